import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * The official Java implementation of the messages as a judge: one request per line on stdin, one answer per line
 * on stdout, fields split by tabs.
 *
 * <pre>
 * read   NAME VERSION HEX    ->  ok JSON HEX REST    (what was understood, written again, bytes left over)
 * write  NAME VERSION JSON   ->  ok HEX
 * schema NAME VERSION        ->  ok JSON             (fields in wire order)
 * range  NAME                ->  ok LOWEST HIGHEST
 * apis                       ->  ok JSON
 * refuse KEY VERSION CODE HEX ->  ok HEX            (the response in which the request's class says this error)
 * </pre>
 *
 * What goes wrong is answered as "error CLASS TEXT". Run as a single source file with the jars of the release.
 */
public final class Golden {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
    };
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Kind> KINDS = new HashMap<>();

    /** A generated class with its JSON converter. */
    private record Kind(Class<?> type, Method toJson, Method fromJson) {
        static Kind find(String name) throws ReflectiveOperationException {
            Kind known = KINDS.get(name);
            if (known == null) {
                Class<?> type = load(name);
                Class<?> converter = Class.forName(type.getName() + "JsonConverter");
                known = new Kind(
                    type,
                    converter.getMethod("write", type, short.class, boolean.class),
                    converter.getMethod("read", JsonNode.class, short.class));
                KINDS.put(name, known);
            }
            return known;
        }

        private static Class<?> load(String name) throws ClassNotFoundException {
            for (String suffix : new String[] {"Data", ""}) {
                for (String prefix : PACKAGES) {
                    try {
                        return Class.forName(prefix + name + suffix);
                    } catch (ClassNotFoundException ignored) {
                        // in another package, then
                    }
                }
            }
            throw new ClassNotFoundException("no message " + name + " in these jars");
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(answer(line));
            out.write('\n');
            if (!in.ready()) { // a batch is answered in few writes
                out.flush();
            }
        }
        out.flush();
    }

    private static String answer(String line) {
        try {
            return "ok\t" + handle(line.split("\t", -1));
        } catch (Throwable problem) {
            Throwable cause = problem instanceof InvocationTargetException ? problem.getCause() : problem;
            return "error\t" + cause.getClass().getSimpleName() + "\t" + String.valueOf(cause.getMessage()).replaceAll("\\s", " ");
        }
    }

    private static String handle(String[] words) throws Exception {
        return switch (words[0]) {
            case "read" -> read(Kind.find(words[1]), Short.parseShort(words[2]), words[3]);
            case "write" -> write(Kind.find(words[1]), Short.parseShort(words[2]), words[3]);
            case "schema" -> schema(Kind.find(words[1]), Short.parseShort(words[2])).toString();
            case "range" -> range(Kind.find(words[1]));
            case "apis" -> apis().toString();
            case "refuse" ->
                refuse(Integer.parseInt(words[1]), Short.parseShort(words[2]), Short.parseShort(words[3]), words[4]);
            default -> throw new IllegalArgumentException("unknown request " + words[0]);
        };
    }

    private static String read(Kind kind, short version, String hex) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        Object message = kind.type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        int rest = buffer.remaining();
        Object json = kind.toJson.invoke(null, message, version, false); // true hides records' sizes
        return JSON.writeValueAsString(json) + "\t" + encode((Message) message, version) + "\t" + rest;
    }

    private static String write(Kind kind, short version, String json) throws Exception {
        return encode((Message) kind.fromJson.invoke(null, JSON.readTree(json), version), version);
    }

    private static String encode(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = message.size(cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size);
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("size " + size + " but " + buffer.position() + " written");
        }
        return HexFormat.of().formatHex(buffer.array());
    }

    private static String refuse(int key, short version, short code, String hex) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        for (Method parse : AbstractRequest.class.getMethods()) {
            if (parse.getName().equals("parseRequest")) { // takes a buffer up to Kafka 3.9
                Object bytes = parse.getParameterTypes()[2] == ByteBuffer.class ? buffer : new ByteBufferAccessor(buffer);
                Object parsed = parse.invoke(null, ApiKeys.forId(key), version, bytes);
                AbstractRequest request = (AbstractRequest) parsed.getClass().getField("request").get(parsed);
                AbstractResponse response = request.getErrorResponse(0, Errors.forCode(code).exception());
                return response == null ? "" : encode(response.data(), version);
            }
        }
        throw new IllegalStateException("these jars have no AbstractRequest.parseRequest");
    }

    // What the classes say about themselves

    private static String range(Kind kind) throws ReflectiveOperationException {
        return kind.type.getField("LOWEST_SUPPORTED_VERSION").getShort(null)
            + "\t" + kind.type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    private static ArrayNode schema(Kind kind, short version) throws ReflectiveOperationException {
        Schema[] schemas = (Schema[]) kind.type.getField("SCHEMAS").get(null);
        return fields(schemas[version]);
    }

    private static ArrayNode fields(Schema schema) throws ReflectiveOperationException {
        ArrayNode fields = JSON.createArrayNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> entry : tags(tagged).entrySet()) {
                    fields.add(field(entry.getValue()).put("tag", entry.getKey()));
                }
            } else {
                fields.add(field(bound.def));
            }
        }
        return fields;
    }

    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> tags(TaggedFields tagged) throws ReflectiveOperationException {
        java.lang.reflect.Field known = TaggedFields.class.getDeclaredField("fields"); // it has no getter
        known.setAccessible(true);
        return (Map<Integer, Field>) known.get(tagged);
    }

    private static ObjectNode field(Field def) throws ReflectiveOperationException {
        ObjectNode node = JSON.createObjectNode().put("name", def.name).put("type", def.type.toString());
        node.put("nullable", def.type.isNullable());
        Type inner = def.type.arrayElementType().orElse(def.type);
        if (inner instanceof Schema schema) {
            node.set("fields", fields(schema));
        }
        return node;
    }

    private static ArrayNode apis() {
        ArrayNode list = JSON.createArrayNode();
        for (ApiMessageType api : ApiMessageType.values()) {
            ObjectNode node = list.addObject().put("name", api.name).put("key", api.apiKey());
            short lowest = api.lowestSupportedVersion();
            short highest = api.highestSupportedVersion(true);
            node.put("lowest", lowest).put("highest", highest).put("latest_stable", api.highestSupportedVersion(false));
            ArrayNode listeners = node.putArray("listeners");
            api.listeners().forEach(listener -> listeners.add(listener.name().toLowerCase()));
            ArrayNode request = node.putArray("request_header_versions");
            ArrayNode response = node.putArray("response_header_versions");
            for (short version = lowest; version <= highest; version++) {
                request.add(api.requestHeaderVersion(version));
                response.add(api.responseHeaderVersion(version));
            }
        }
        return list;
    }
}
