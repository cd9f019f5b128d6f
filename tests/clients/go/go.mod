module omnibus/tests/clients/go

go 1.19

require (
	github.com/go-mysql-org/go-mysql v1.7.0
	github.com/shopspring/decimal v0.0.0-20180709203117-cd690d0c9e24
	github.com/siddontang/go-log v0.0.0-20180807004314-8d05993dda07
)

require (
	github.com/BurntSushi/toml v0.3.1 // indirect
	github.com/google/uuid v1.3.0 // indirect
	github.com/pingcap/errors v0.11.5-0.20210425183316-da1aaba5fb63 // indirect
	github.com/pingcap/log v0.0.0-20210625125904-98ed8e2eb1c7 // indirect
	github.com/pingcap/tidb/parser v0.0.0-20221126021158-6b02a5d8ba7d // indirect
	github.com/siddontang/go v0.0.0-20180604090527-bdc77568d726 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.6.0 // indirect
	go.uber.org/zap v1.18.1 // indirect
	golang.org/x/text v0.3.6 // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.0.0 // indirect
)
