import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Prints all records of the topics that are called NAME or begin with `NAME.`, in lines of JSON: `Dump HOST:PORT NAME`. */
public class Dump {
    static String text(byte[] bytes) {
        if (bytes == null) return "null";
        StringBuilder out = new StringBuilder("\"");
        for (char c : new String(bytes, StandardCharsets.UTF_8).toCharArray()) {
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < ' ') out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        return out.append('"').toString();
    }

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> wanted = new ArrayList<>();
            for (Map.Entry<String, List<PartitionInfo>> topic : consumer.listTopics().entrySet())
                if (topic.getKey().equals(args[1]) || topic.getKey().startsWith(args[1] + "."))
                    for (PartitionInfo part : topic.getValue()) wanted.add(new TopicPartition(topic.getKey(), part.partition()));
            consumer.assign(wanted);
            consumer.seekToBeginning(wanted);
            Map<TopicPartition, Long> ends = consumer.endOffsets(wanted);
            java.io.PrintStream out = new java.io.PrintStream(new java.io.BufferedOutputStream(System.out), false, "UTF-8");
            while (wanted.stream().anyMatch(part -> consumer.position(part) < ends.get(part))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    out.print("{\"topic\":" + text(record.topic().getBytes(StandardCharsets.UTF_8)) + ",\"key\":" + text(record.key())
                        + ",\"value\":" + text(record.value()) + ",\"headers\":{");
                    String comma = "";
                    for (Header header : record.headers()) {
                        out.print(comma + text(header.key().getBytes(StandardCharsets.UTF_8)) + ":" + text(header.value()));
                        comma = ",";
                    }
                    out.println("}}");
                }
            }
            out.flush();
        }
    }
}
