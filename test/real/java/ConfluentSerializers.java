import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.SchemaMetadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Confluent's client of a schema registry, and its serializers in a producer and a consumer of Apache Kafka.
 *
 * Arguments: the registry, the brokers, a subject, the topics to read (two, with commas), the topics to write (two),
 * four schemas (a first one, one that follows it, one that is not compatible, one that refers to the first), and three
 * values in Avro's JSON, of the first, the second and the fourth schema. The registry has the fourth schema as the
 * newest of the second topic to write. Prints a line for each thing that was seen: its name, a space, what it was.
 */
public final class ConfluentSerializers {
    private interface Call {
        Object run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        String url = args[0], brokers = args[1], subject = args[2];
        String[] theirs = args[3].split(","), ours = args[4].split(",");
        AvroSchema schema = new AvroSchema(args[5]), wrong = new AvroSchema(args[7]);
        CachedSchemaRegistryClient one = new CachedSchemaRegistryClient(url, 100);
        CachedSchemaRegistryClient other = new CachedSchemaRegistryClient(url, 100); // has nothing in its cache

        int id = one.register(subject, schema);
        tell("again", () -> other.register(subject, schema) == id);
        tell("by_id", () -> other.getSchemaById(id).equals(schema));
        tell("id_of", () -> other.getId(subject, schema) == id);
        tell("version_of", () -> other.getVersion(subject, schema));
        SchemaMetadata latest = other.getLatestSchemaMetadata(subject);
        tell("latest", () -> latest.getId() == id && new AvroSchema(latest.getSchema()).equals(schema));
        tell("versions", () -> other.getAllVersions(subject));
        tell("subjects", () -> other.getAllSubjects().contains(subject));
        tell("level", () -> other.updateCompatibility(subject, "BACKWARD") + " " + other.getCompatibility(subject));
        tell("compatible", () -> other.testCompatibility(subject, wrong));
        tell("refused", () -> other.register(subject, wrong));
        tell("unknown_id", () -> other.getSchemaById(1_999_999_999));
        tell("unknown_subject", () -> other.getLatestSchemaMetadata(subject + "-nope"));

        List<SchemaReference> references = List.of(new SchemaReference(schema.name(), subject, 1));
        AvroSchema using = new AvroSchema(args[8], references, Map.of(schema.name(), args[5]), null);
        int usingId = one.register(subject + "-using", using);
        AvroSchema found = (AvroSchema) other.getSchemaById(usingId);
        tell("references", () -> found.references().equals(references));
        tell("resolved", () -> found.rawSchema().getFields().get(0).schema().getFullName());
        tell("deleted", () -> other.deleteSubject(subject + "-using"));
        tell("deleted_again", () -> other.getLatestSchemaMetadata(subject + "-using"));

        Schema first = schema.rawSchema(), second = new AvroSchema(args[6]).rawSchema(), cart = using.rawSchema();
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", brokers, "schema.registry.url", url));
        try (KafkaProducer<Object, Object> producer = producer(config)) {
            producer.send(new ProducerRecord<>(ours[0], "grün", value(first, args[9]))).get();
            other.updateCompatibility(ours[0] + "-value", "BACKWARD");
            producer.send(new ProducerRecord<>(ours[0], "k", value(second, args[10]))).get();
            producer.send(new ProducerRecord<>(ours[0], "gone", null)).get();
            ProducerRecord<Object, Object> bad = new ProducerRecord<>(ours[0], "k", value(wrong.rawSchema(), "{\"n\": 1}"));
            tell("not_written", () -> producer.send(bad).get());
        }
        config.putAll(Map.of("auto.register.schemas", false, "use.latest.version", true));
        try (KafkaProducer<Object, Object> producer = producer(config)) {
            producer.send(new ProducerRecord<>(ours[1], null, value(cart, args[11]))).get();
        }

        KafkaAvroDeserializer keys = new KafkaAvroDeserializer(other), values = new KafkaAvroDeserializer(other);
        keys.configure(config, true);
        values.configure(config, false);
        for (int topic = 0; topic < theirs.length; topic++) {
            for (ConsumerRecord<byte[], byte[]> record : read(brokers, theirs[topic])) {
                String name = "read_" + topic + "_" + record.offset();
                tell(name, () -> keys.deserialize(record.topic(), record.key()) + " "
                    + values.deserialize(record.topic(), record.value()));
                if (topic == 0) {
                    tell(name + "_as_first", () -> values.deserialize(record.topic(), record.value(), first));
                    tell(name + "_as_second", () -> values.deserialize(record.topic(), record.value(), second));
                }
            }
        }
    }

    private static KafkaProducer<Object, Object> producer(Map<String, Object> config) {
        Map<String, Object> whole = new HashMap<>(config);
        whole.put("key.serializer", KafkaAvroSerializer.class);
        whole.put("value.serializer", KafkaAvroSerializer.class);
        return new KafkaProducer<>(whole);
    }

    private static Object value(Schema schema, String json) throws Exception {
        return new GenericDatumReader<>(schema).read(null, DecoderFactory.get().jsonDecoder(schema, json));
    }

    /** Returns all records of a topic with one partition. */
    private static List<ConsumerRecord<byte[], byte[]>> read(String brokers, String topic) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        List<TopicPartition> only = List.of(new TopicPartition(topic, 0));
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(Map.of("bootstrap.servers", brokers), bytes, bytes)) {
            long end = consumer.endOffsets(only).get(only.get(0));
            consumer.assign(only);
            consumer.seekToBeginning(only);
            while (consumer.position(only.get(0)) < end) {
                consumer.poll(Duration.ofSeconds(1)).forEach(found::add);
            }
        }
        return found;
    }

    private static void tell(String name, Call call) {
        Object seen;
        try {
            seen = call.run();
        } catch (RestClientException error) {
            seen = error.getStatus() + " " + error.getErrorCode();
        } catch (Exception error) {
            seen = error.getCause() == null ? error : error.getCause();
        }
        System.out.println(name + " " + seen);
    }
}
