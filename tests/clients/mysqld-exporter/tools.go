//go:build tools

package tools

import _ "github.com/prometheus/mysqld_exporter"
