// vstream prints the rows of a table as vtgate streams them, one JSON object a line: what was there first, then each change.
//
//	vstream ADDRESS KEYSPACE TABLE [VGTID]
//
// A line {"vgtid": ..} follows what it covers: give it back as the last argument, and the stream goes on behind it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"google.golang.org/protobuf/encoding/protojson"

	"vitess.io/vitess/go/sqltypes"
	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtgatepb "vitess.io/vitess/go/vt/proto/vtgate"
	_ "vitess.io/vitess/go/vt/vtgate/grpcvtgateconn"
	"vitess.io/vitess/go/vt/vtgate/vtgateconn"
)

func row(fields []*querypb.Field, values *querypb.Row) map[string]string {
	if values == nil {
		return nil
	}
	named := map[string]string{}
	for i, value := range sqltypes.MakeRowTrusted(fields, values) {
		named[fields[i].Name] = value.ToString()
	}
	return named
}

func say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}

func main() {
	address, keyspace, table := os.Args[1], os.Args[2], os.Args[3]
	from := &binlogdatapb.VGtid{ShardGtids: []*binlogdatapb.ShardGtid{{Keyspace: keyspace}}}
	if len(os.Args) > 4 {
		from = &binlogdatapb.VGtid{}
		if err := protojson.Unmarshal([]byte(os.Args[4]), from); err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	conn, err := vtgateconn.Dial(ctx, address)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	filter := &binlogdatapb.Filter{Rules: []*binlogdatapb.Rule{{Match: table, Filter: "select * from " + table}}}
	reader, err := conn.VStream(ctx, topodatapb.TabletType_PRIMARY, from, filter, &vtgatepb.VStreamFlags{})
	if err != nil {
		log.Fatal(err)
	}
	// Each shard tells its fields.
	fields := map[string][]*querypb.Field{}
	for {
		events, err := reader.Recv()
		if err != nil {
			log.Fatal(err)
		}
		for _, event := range events {
			switch event.Type {
			case binlogdatapb.VEventType_FIELD:
				fields[event.FieldEvent.Shard] = event.FieldEvent.Fields
			case binlogdatapb.VEventType_ROW:
				known := fields[event.RowEvent.Shard]
				for _, change := range event.RowEvent.RowChanges {
					say(map[string]any{"before": row(known, change.Before), "after": row(known, change.After)})
				}
			case binlogdatapb.VEventType_VGTID:
				text, err := protojson.Marshal(event.Vgtid)
				if err != nil {
					log.Fatal(err)
				}
				say(map[string]any{"vgtid": string(text)})
			}
		}
	}
}
