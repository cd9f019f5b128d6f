//go:build tools

package tools

import _ "github.com/github/gh-ost/go/cmd/gh-ost"
