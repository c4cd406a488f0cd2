import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaMetadata;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumReader;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumWriter;
import org.apache.flink.avro.shaded.org.apache.avro.io.BinaryEncoder;
import org.apache.flink.avro.shaded.org.apache.avro.io.DecoderFactory;
import org.apache.flink.avro.shaded.org.apache.avro.io.EncoderFactory;
import org.apache.flink.formats.avro.registry.confluent.ConfluentSchemaRegistryCoder;

/**
 * Confluent's client of a schema registry, and what Flink writes and reads with it (both are in Flink's jar).
 *
 * Arguments: the address, a subject, a schema, an incompatible one, one that refers to the first, a value as JSON, the
 * bytes of a value in base64. Prints a line for each thing that was seen: its name, a space, and what it was.
 */
public final class RegistryClient {
    private interface Call {
        Object run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        String url = args[0], subject = args[1];
        AvroSchema schema = new AvroSchema(args[2]), wrong = new AvroSchema(args[3]);
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
        AvroSchema using = new AvroSchema(args[4], references, Map.of(schema.name(), args[2]), null);
        int usingId = one.register(subject + "-using", using);
        AvroSchema found = (AvroSchema) other.getSchemaById(usingId);
        tell("references", () -> found.references().equals(references));
        tell("resolved", () -> found.rawSchema().getFields().get(0).schema().getFullName());

        ConfluentSchemaRegistryCoder coder = new ConfluentSchemaRegistryCoder(subject, other);
        Schema avro = schema.rawSchema();
        Object value = new GenericDatumReader<>(avro).read(null, DecoderFactory.get().jsonDecoder(avro, args[5]));
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        coder.writeSchema(avro, written);
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(written, null);
        new GenericDatumWriter<>(avro).write(value, encoder);
        encoder.flush();
        tell("written", () -> Base64.getEncoder().encodeToString(written.toByteArray()));
        ByteArrayInputStream read = new ByteArrayInputStream(Base64.getDecoder().decode(args[6]));
        Schema writers = coder.readSchema(read);
        Object theirs = new GenericDatumReader<>(writers).read(null, DecoderFactory.get().binaryDecoder(read, null));
        tell("read", () -> theirs.equals(value));

        tell("deleted", () -> other.deleteSubject(subject + "-using"));
        tell("deleted_again", () -> other.getLatestSchemaMetadata(subject + "-using"));
    }

    private static void tell(String name, Call call) throws Exception {
        Object seen;
        try {
            seen = call.run();
        } catch (RestClientException error) {
            seen = error.getStatus() + " " + error.getErrorCode();
        }
        System.out.println(name + " " + seen);
    }
}
