import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/**
 * Prints as JSON all that Kafka's own Admin says of a cluster. On stdin: a "config", and "calls", a list of calls with
 * their arguments; on stdout: the list of their results.
 *
 * An object of Kafka becomes an object with what its methods without parameters return, so that no fact of a
 * description is left out. A future that failed becomes {"error": "TheException"}; a node becomes its id.
 */
public final class AdminFacts {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory MAKE = JsonNodeFactory.instance;
    /** Methods that say again, in another form, what others say. */
    private static final Set<String> REPEATED = Set.of(
        "toString", "hashCode", "getClass", "toFilter", "isUnknown", "isDefault", "hmacAsBase64String", "ownerAsString",
        "tokenRequesterAsString", "renewersAsString", "isEmpty", "idString", "hasRack");

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // logs go elsewhere
        JsonNode given = JSON.readTree(System.in);
        Properties config = new Properties();
        given.get("config").fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        ArrayNode results = JSON.createArrayNode();
        try (Admin admin = Admin.create(config)) {
            for (JsonNode call : given.get("calls")) {
                results.add(json(call(admin, call)));
            }
        }
        answers.write(results.toString().getBytes(StandardCharsets.UTF_8));
        answers.flush();
    }

    private static Object call(Admin admin, JsonNode call) throws Exception {
        List<String> names = texts(call.path("names"));
        List<TopicPartition> partitions = partitions(call.path("partitions"));
        return switch (call.get("call").asText()) {
            case "describeCluster" -> cluster(admin);
            case "listTopics" -> admin.listTopics(new ListTopicsOptions().listInternal(true)).listings();
            case "describeTopics" ->
                admin.describeTopics(names, new DescribeTopicsOptions().includeAuthorizedOperations(true)).topicNameValues();
            case "describeConfigs" -> admin.describeConfigs(resources(call.get("resources")),
                new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).values();
            case "listConfigResources" -> admin.listConfigResources().all();
            case "listClientMetricsResources" -> admin.listClientMetricsResources().all();
            case "describeAcls" -> admin.describeAcls(AclBindingFilter.ANY).values();
            case "listGroups" -> admin.listGroups().all();
            case "describeConsumerGroups" -> admin.describeConsumerGroups(names,
                new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).describedGroups();
            case "describeClassicGroups" -> admin.describeClassicGroups(names,
                new DescribeClassicGroupsOptions().includeAuthorizedOperations(true)).describedGroups();
            case "describeShareGroups" -> admin.describeShareGroups(names,
                new DescribeShareGroupsOptions().includeAuthorizedOperations(true)).describedGroups();
            case "describeStreamsGroups" -> admin.describeStreamsGroups(names,
                new DescribeStreamsGroupsOptions().includeAuthorizedOperations(true)).describedGroups();
            case "listConsumerGroupOffsets" -> {
                var found = admin.listConsumerGroupOffsets(each(names, name -> new ListConsumerGroupOffsetsSpec()));
                yield each(names, found::partitionsToOffsetAndMetadata);
            }
            case "listStreamsGroupOffsets" -> {
                var found = admin.listStreamsGroupOffsets(each(names, name -> new ListStreamsGroupOffsetsSpec()));
                yield each(names, found::partitionsToOffsetAndMetadata);
            }
            case "listShareGroupOffsets" -> {
                var found = admin.listShareGroupOffsets(each(names, name -> new ListShareGroupOffsetsSpec()));
                yield each(names, found::partitionsToOffsetInfo);
            }
            case "listOffsets" -> {
                OffsetSpec spec = offsetSpec(call.get("spec"));
                var found = admin.listOffsets(each(partitions, partition -> spec));
                yield each(partitions, found::partitionResult);
            }
            case "describeClientQuotas" -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities();
            case "describeUserScramCredentials" -> {
                var found = admin.describeUserScramCredentials(names);
                yield names.isEmpty() ? found.all() : each(names, found::description);
            }
            case "describeDelegationToken" -> admin.describeDelegationToken().delegationTokens();
            case "listTransactions" -> admin.listTransactions().byBrokerId();
            case "describeTransactions" -> each(names, admin.describeTransactions(names)::description);
            case "describeProducers" -> each(partitions, admin.describeProducers(partitions)::partitionResult);
            case "describeFeatures" -> admin.describeFeatures().featureMetadata();
            case "describeMetadataQuorum" -> admin.describeMetadataQuorum().quorumInfo();
            case "describeLogDirs" -> admin.describeLogDirs(numbers(call.get("brokers"))).descriptions();
            case "describeReplicaLogDirs" -> admin.describeReplicaLogDirs(replicas(call.get("replicas"))).values();
            case "listPartitionReassignments" -> admin.listPartitionReassignments().reassignments();
            default -> throw new IllegalArgumentException("unknown call in " + call);
        };
    }

    private static Object cluster(Admin admin) {
        DescribeClusterResult found = admin.describeCluster(
            new DescribeClusterOptions().includeAuthorizedOperations(true).includeFencedBrokers(true));
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("clusterId", found.clusterId());
        facts.put("controller", found.controller());
        facts.put("authorizedOperations", found.authorizedOperations());
        facts.put("nodes", found.nodes().thenApply(nodes -> nodes.stream().map(AdminFacts::members).toList()));
        return facts;
    }

    // Arguments

    private static List<String> texts(JsonNode node) {
        List<String> found = new ArrayList<>();
        node.forEach(one -> found.add(one.asText()));
        return found;
    }

    private static List<Integer> numbers(JsonNode node) {
        List<Integer> found = new ArrayList<>();
        node.forEach(one -> found.add(one.asInt()));
        return found;
    }

    private static List<TopicPartition> partitions(JsonNode node) {
        List<TopicPartition> found = new ArrayList<>();
        node.forEach(one -> found.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        return found;
    }

    private static List<TopicPartitionReplica> replicas(JsonNode node) {
        List<TopicPartitionReplica> found = new ArrayList<>();
        node.forEach(one ->
            found.add(new TopicPartitionReplica(one.get(0).asText(), one.get(1).asInt(), one.get(2).asInt())));
        return found;
    }

    private static List<ConfigResource> resources(JsonNode node) {
        List<ConfigResource> found = new ArrayList<>();
        node.forEach(one ->
            found.add(new ConfigResource(ConfigResource.Type.valueOf(one.get(0).asText()), one.get(1).asText())));
        return found;
    }

    private static OffsetSpec offsetSpec(JsonNode node) {
        return switch (node.asText()) {
            case "LATEST" -> OffsetSpec.latest();
            case "EARLIEST" -> OffsetSpec.earliest();
            case "MAX_TIMESTAMP" -> OffsetSpec.maxTimestamp();
            case "EARLIEST_LOCAL" -> OffsetSpec.earliestLocal();
            case "LATEST_TIERED" -> OffsetSpec.latestTiered();
            case "EARLIEST_PENDING_UPLOAD" -> OffsetSpec.earliestPendingUpload();
            default -> OffsetSpec.forTimestamp(node.asLong());
        };
    }

    private static <K, V> Map<K, V> each(Collection<K> keys, Function<K, V> value) {
        Map<K, V> found = new HashMap<>();
        keys.forEach(key -> found.put(key, value.apply(key)));
        return found;
    }

    // Results

    private static JsonNode json(Object value) throws Exception {
        if (value instanceof KafkaFuture<?> future) {
            try {
                return json(future.get());
            } catch (ExecutionException problem) {
                return MAKE.objectNode().put("error", problem.getCause().getClass().getSimpleName());
            }
        }
        if (value instanceof Optional<?> some) {
            return json(some.orElse(null));
        }
        if (value instanceof OptionalInt some) {
            return some.isPresent() ? MAKE.numberNode(some.getAsInt()) : MAKE.nullNode();
        }
        if (value instanceof OptionalLong some) {
            return some.isPresent() ? MAKE.numberNode(some.getAsLong()) : MAKE.nullNode();
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, JsonNode> sorted = new TreeMap<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                sorted.put(text(entry.getKey()), json(entry.getValue()));
            }
            return MAKE.objectNode().setAll(sorted);
        }
        if (value instanceof Set<?> set) {
            List<JsonNode> found = new ArrayList<>();
            for (Object one : set) {
                found.add(json(one));
            }
            found.sort((one, other) -> one.toString().compareTo(other.toString()));
            return MAKE.arrayNode().addAll(found);
        }
        if (value instanceof Collection<?> collection) {
            ArrayNode found = MAKE.arrayNode();
            for (Object one : collection) {
                found.add(json(one));
            }
            return found;
        }
        if (value instanceof Enum<?> constant) {
            return MAKE.textNode(constant.name());
        }
        if (value instanceof Node node) {
            return MAKE.numberNode(node.id());
        }
        if (value instanceof Uuid || value instanceof TopicPartition || value instanceof KafkaPrincipal) {
            return MAKE.textNode(value.toString());
        }
        if (value instanceof Throwable problem) {
            return MAKE.textNode(problem.getClass().getSimpleName());
        }
        if (value != null && value.getClass().getName().startsWith("org.apache.kafka.")) {
            return json(members(value));
        }
        return JSON.valueToTree(value);
    }

    /** What an object's methods without parameters return, by their names. */
    private static Map<String, Object> members(Object value) {
        Map<String, Object> found = new TreeMap<>();
        for (Method method : value.getClass().getMethods()) {
            boolean says = method.getParameterCount() == 0 && method.getReturnType() != void.class
                && !Modifier.isStatic(method.getModifiers()) && method.getDeclaringClass() != Object.class
                && !method.isAnnotationPresent(Deprecated.class) && !REPEATED.contains(method.getName());
            if (says) {
                try {
                    method.setAccessible(true);
                    found.put(method.getName(), method.invoke(value));
                } catch (ReflectiveOperationException problem) {
                    throw new IllegalStateException(method.toString(), problem);
                }
            }
        }
        return found;
    }

    /** A key of a map: "t-0" for a partition, "TOPIC t" for a configuration, "t-0-1" for a replica. */
    private static String text(Object key) {
        if (key instanceof ConfigResource resource) {
            return resource.type() + " " + resource.name();
        }
        if (key instanceof TopicPartitionReplica replica) {
            return replica.topic() + "-" + replica.partition() + "-" + replica.brokerId();
        }
        if (key instanceof ClientQuotaEntity entity) {
            return new TreeMap<>(entity.entries()).entrySet().stream()
                .map(one -> one.getKey() + "=" + (one.getValue() == null ? "<default>" : one.getValue()))
                .collect(Collectors.joining(","));
        }
        return String.valueOf(key);
    }
}
