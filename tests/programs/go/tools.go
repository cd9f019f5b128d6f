//go:build tools

// Package programs pins what is tested, and has tests of its own.
package programs

import (
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jinzhu/gorm"
	_ "gorm.io/datatypes"
	_ "gorm.io/driver/mysql"
	_ "gorm.io/gorm"
	_ "xorm.io/xorm/integrations"
)
