// Prints a server's row events, read with go-mysql's canal. Arguments and output: ../README.md.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/canal"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/shopspring/decimal"
	"github.com/siddontang/go-log/log"
)

type line struct {
	Schema string        `json:"schema"`
	Table  string        `json:"table"`
	Kind   string        `json:"kind"`
	Before []interface{} `json:"before"`
	After  []interface{} `json:"after"`
}

type printer struct {
	canal.DummyEventHandler
	pending []line
	out     *json.Encoder
	done    bool
}

func bytesOf(data []byte) interface{} { return map[string]string{"hex": hex.EncodeToString(data)} }

func plain(row []interface{}) []interface{} {
	out := make([]interface{}, len(row))
	for i, value := range row {
		switch v := value.(type) {
		case nil:
		case []byte:
			out[i] = bytesOf(v)
		case string:
			out[i] = bytesOf([]byte(v))
		case decimal.Decimal:
			out[i] = v.String()
		case float32:
			out[i] = strconv.FormatFloat(float64(v), 'g', -1, 32)
		case float64:
			out[i] = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			out[i] = fmt.Sprint(v)
		}
	}
	return out
}

func (p *printer) OnRow(e *canal.RowsEvent) error {
	step := 1
	if e.Action == canal.UpdateAction {
		step = 2
	}
	for i := 0; i < len(e.Rows); i += step {
		l := line{Schema: e.Table.Schema, Table: e.Table.Name, Kind: e.Action}
		switch e.Action {
		case canal.InsertAction:
			l.After = plain(e.Rows[i])
		case canal.DeleteAction:
			l.Before = plain(e.Rows[i])
		default:
			l.Before, l.After = plain(e.Rows[i]), plain(e.Rows[i+1])
		}
		p.pending = append(p.pending, l)
	}
	return nil
}

func (p *printer) OnXID(*replication.EventHeader, mysql.Position) error {
	for _, l := range p.pending {
		if err := p.out.Encode(l); err != nil {
			return err
		}
		p.done = p.done || l.Table == "marker"
	}
	p.pending = nil
	if p.done {
		os.Exit(0)
	}
	return nil
}

// A transaction begins: what is left of one before it comes again, after a lost connection.
func (p *printer) OnGTID(*replication.EventHeader, mysql.GTIDSet) error {
	p.pending = nil
	return nil
}

func (p *printer) String() string { return "printer" }

func run() error {
	serverID, err := strconv.ParseUint(os.Args[4], 10, 32)
	if err != nil {
		return err
	}
	position, err := strconv.ParseUint(os.Args[6], 10, 32)
	if err != nil {
		return err
	}
	config := canal.NewDefaultConfig()
	config.Addr, config.User, config.Password = "127.0.0.1:"+os.Args[1], os.Args[2], os.Args[3]
	config.ServerID, config.HeartbeatPeriod = uint32(serverID), time.Second
	handler, err := log.NewStreamHandler(os.Stderr)
	if err != nil {
		return err
	}
	config.Logger = log.NewDefault(handler)
	config.Dump.ExecutionPath = "" // changes only, no first copy
	config.UseDecimal, config.TimestampStringLocation = true, time.UTC
	config.IncludeTableRegex = []string{"cdc\\..*"}
	if os.Getenv("FLAVOR") != "" {
		config.Flavor = os.Getenv("FLAVOR")
	}
	c, err := canal.NewCanal(config)
	if err != nil {
		return err
	}
	c.SetEventHandler(&printer{out: json.NewEncoder(os.Stdout)})
	if len(os.Args) > 7 {
		set, err := mysql.ParseGTIDSet(config.Flavor, "")
		if err != nil {
			return err
		}
		return c.StartFromGTID(set)
	}
	return c.RunFrom(mysql.Position{Name: os.Args[5], Pos: uint32(position)})
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
