import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own Java client, for tests of what we write and of what we read: one JSON request per line on stdin, one
 * JSON answer per line on stdout. Keys, values and headers are base64.
 *
 * <pre>
 * {"op": "produce", "config": {}, "topic": "t", "records": [{"value": "eA=="}], "transaction": "commit"}
 * {"op": "consume", "config": {}, "topic": "t", "count": 3, "timeout_ms": 10000}
 * {"op": "nodes", "config": {}}
 * </pre>
 *
 * A consumer with a group.id subscribes and commits, one without reads all partitions from their beginning.
 */
public final class JavaClient {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // logs go elsewhere, the pipe is for answers alone
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answers.write((answer(line).toString() + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
    }

    private static JsonNode answer(String line) {
        try {
            JsonNode request = JSON.readTree(line);
            return switch (request.get("op").asText()) {
                case "produce" -> produce(request);
                case "consume" -> consume(request);
                case "nodes" -> nodes(request);
                default -> throw new IllegalArgumentException("unknown op in " + line);
            };
        } catch (Throwable problem) {
            Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
            StringBuilder text = new StringBuilder(String.valueOf(cause.getMessage()));
            for (Throwable deeper = cause.getCause(); deeper != null; deeper = deeper.getCause()) {
                text.append("; ").append(deeper.getMessage());
            }
            return JSON.createObjectNode().put("error", cause.getClass().getSimpleName()).put("message", text.toString());
        }
    }

    private static Properties config(JsonNode request) {
        Properties config = new Properties();
        config.put("default.api.timeout.ms", "15000");
        config.put("request.timeout.ms", "10000");
        request.get("config").fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return config;
    }

    // Producing

    private static JsonNode produce(JsonNode request) throws Exception {
        Properties config = config(request);
        config.putIfAbsent("delivery.timeout.ms", "15000");
        config.putIfAbsent("max.block.ms", "15000");
        String transaction = request.path("transaction").asText("");
        ArrayNode answer = JSON.createArrayNode();
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (!transaction.isEmpty()) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : request.get("records")) {
                sent.add(producer.send(record(request.get("topic").asText(), record)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                RecordMetadata where = one.get();
                answer.addObject().put("partition", where.partition()).put("offset", where.offset())
                    .put("timestamp", where.timestamp());
            }
            if (transaction.equals("commit")) {
                producer.commitTransaction();
            } else if (transaction.equals("abort")) {
                producer.abortTransaction();
            }
        }
        return answer;
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, JsonNode node) {
        Integer partition = node.hasNonNull("partition") ? node.get("partition").asInt() : null;
        Long timestamp = node.hasNonNull("timestamp") ? node.get("timestamp").asLong() : null;
        var record = new ProducerRecord<>(topic, partition, timestamp, bytes(node.path("key")), bytes(node.path("value")));
        for (JsonNode header : node.path("headers")) {
            record.headers().add(header.get(0).asText(), bytes(header.get(1)));
        }
        return record;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() || node.isMissingNode() ? null : Base64.getDecoder().decode(node.asText());
    }

    // Consuming

    private static JsonNode consume(JsonNode request) {
        Properties config = config(request);
        config.putIfAbsent("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        String topic = request.get("topic").asText();
        int count = request.get("count").asInt();
        long deadline = System.nanoTime() + request.get("timeout_ms").asLong() * 1_000_000L;
        ArrayNode answer = JSON.createArrayNode();
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            if (config.containsKey("group.id")) {
                consumer.subscribe(List.of(topic));
            } else {
                List<TopicPartition> all = new ArrayList<>();
                for (PartitionInfo info : consumer.partitionsFor(topic)) {
                    all.add(new TopicPartition(topic, info.partition()));
                }
                consumer.assign(all);
            }
            while (answer.size() < count && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> answer.add(node(record)));
            }
            if (config.containsKey("group.id")) {
                consumer.commitSync();
            }
        }
        return answer;
    }

    private static ObjectNode node(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode().put("partition", record.partition()).put("offset", record.offset())
            .put("timestamp", record.timestamp()).put("timestamp_type", record.timestampType().id)
            .put("key", record.key()).put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return node;
    }

    private static JsonNode nodes(JsonNode request) throws Exception {
        ArrayNode answer = JSON.createArrayNode();
        try (Admin admin = Admin.create(config(request))) {
            admin.describeCluster().nodes().get().forEach(node -> answer.add(node.id()));
        }
        return answer;
    }
}
