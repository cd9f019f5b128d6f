// Prints a server's row events, read with mysql-binlog-connector-java. Arguments and output: ../README.md.

import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.*;
import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.github.shyiko.mysql.binlog.event.deserialization.json.JsonBinary;
import java.io.PrintStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Client {
    private final Map<Long, TableMapEventData> tables = new HashMap<>();
    private final List<String> pending = new ArrayList<>();
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private boolean marker;

    public static void main(String[] args) throws Exception {
        BinaryLogClient client = new BinaryLogClient("127.0.0.1", Integer.parseInt(args[0]), args[1], args[2]);
        client.setServerId(Long.parseLong(args[3]));
        if (args.length > 6) {
            client.setGtidSet("");
        } else {
            client.setBinlogFilename(args[4]);
            client.setBinlogPosition(Long.parseLong(args[5]));
        }
        client.setKeepAliveInterval(1000);
        client.setHeartbeatInterval(500);
        EventDeserializer deserializer = new EventDeserializer();
        deserializer.setCompatibilityMode(EventDeserializer.CompatibilityMode.DATE_AND_TIME_AS_LONG_MICRO,
            EventDeserializer.CompatibilityMode.CHAR_AND_BINARY_AS_BYTE_ARRAY,
            EventDeserializer.CompatibilityMode.INVALID_DATE_AND_TIME_AS_MIN_VALUE);
        client.setEventDeserializer(deserializer);
        Client printer = new Client();
        client.registerEventListener(printer::event);
        client.registerLifecycleListener(new BinaryLogClient.AbstractLifecycleListener() {
            @Override
            public void onCommunicationFailure(BinaryLogClient c, Exception e) {
                System.err.println("communication: " + e);
            }

            @Override
            public void onEventDeserializationFailure(BinaryLogClient c, Exception e) {
                System.err.println("deserialization: " + e + " " + e.getCause());
                System.exit(3);
            }
        });
        // The keep-alive thread of the library connects again when this first call has returned.
        while (true) {
            try {
                client.connect();
                Thread.sleep(100);
            } catch (java.io.IOException | IllegalStateException e) {
                System.err.println("not connected: " + e);
                Thread.sleep(100);
            }
        }
    }

    private void event(Event event) {
        EventData data = event.getData();
        if (data instanceof TableMapEventData map) {
            tables.put(map.getTableId(), map);
        } else if (data instanceof WriteRowsEventData rows) {
            for (Serializable[] row : rows.getRows()) add(rows.getTableId(), "insert", null, row);
        } else if (data instanceof DeleteRowsEventData rows) {
            for (Serializable[] row : rows.getRows()) add(rows.getTableId(), "delete", row, null);
        } else if (data instanceof UpdateRowsEventData rows) {
            for (Map.Entry<Serializable[], Serializable[]> row : rows.getRows())
                add(rows.getTableId(), "update", row.getKey(), row.getValue());
        } else if (data instanceof GtidEventData) {
            pending.clear(); // a transaction begins: what is left of one before it comes again, after a lost connection
        } else if (data instanceof XidEventData || data instanceof QueryEventData query && !query.getSql().equals("BEGIN")) {
            pending.forEach(out::println);
            pending.clear();
            if (marker) System.exit(0);
        }
    }

    private void add(long id, String kind, Serializable[] before, Serializable[] after) {
        TableMapEventData map = tables.get(id);
        marker |= map.getTable().equals("marker");
        pending.add("{\"schema\": \"" + map.getDatabase() + "\", \"table\": \"" + map.getTable() + "\", \"kind\": \"" + kind
            + "\", \"before\": " + image(map, before) + ", \"after\": " + image(map, after) + "}");
    }

    private static String image(TableMapEventData map, Serializable[] row) {
        if (row == null) return "null";
        StringJoiner values = new StringJoiner(", ", "[", "]");
        for (int i = 0; i < row.length; i++) {
            boolean json = (map.getColumnTypes()[i] & 0xff) == ColumnType.JSON.getCode();
            values.add(json && row[i] != null ? json((byte[]) row[i]) : plain(row[i]));
        }
        return values.toString();
    }

    private static String json(byte[] value) {
        try {
            return "{\"json\": " + JsonBinary.parseAsString(value) + "}";
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static String plain(Serializable value) {
        if (value == null) return "null";
        if (value instanceof byte[] bytes) return "{\"hex\": \"" + HexFormat.of().formatHex(bytes) + "\"}";
        if (value instanceof BigDecimal decimal) return "\"" + decimal.toPlainString() + "\"";
        if (value instanceof BitSet bits) return "\"" + Long.toUnsignedString(bits.isEmpty() ? 0 : bits.toLongArray()[0]) + "\"";
        return "\"" + value + "\"";
    }
}
