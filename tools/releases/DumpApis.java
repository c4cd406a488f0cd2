import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.protocol.ApiKeys;

/**
 * Prints what a broker of the release of a kafka-clients jar offers: one line "key min max" for each API.
 *
 * Everything is reached by reflection because the one source has to run on the jars of all releases: the tables of
 * 0.8 to 0.10 (Protocol), the methods of ApiKeys since 0.11, the listeners since 2.8, unstable versions since 3.5 and
 * the wider range that 4.0 and later tell to clients for some APIs.
 */
public class DumpApis {
    public static void main(String[] args) throws Exception {
        for (ApiKeys api : servedByBrokers()) {
            short[] range = range(api);
            if (range != null && range[0] <= range[1])
                System.out.println(api.id + " " + range[0] + " " + range[1]);
        }
    }

    /** Brokers of ZooKeeper's time and of KRaft's count as one: a release has the APIs that either serves. */
    private static Collection<ApiKeys> servedByBrokers() throws Exception {
        Method inScope = method(ApiKeys.class, "inScope");
        if (inScope != null) {
            Set<ApiKeys> served = new LinkedHashSet<>();
            for (ApiKeys api : ApiKeys.values())
                for (Object listener : brokerListeners(inScope))
                    if ((boolean) inScope.invoke(api, listener))
                        served.add(api);
            return served;
        }
        Method enabled = method(ApiKeys.class, "enabledApis");
        if (enabled != null) {
            @SuppressWarnings("unchecked")
            Collection<ApiKeys> served = (Collection<ApiKeys>) enabled.invoke(null);
            return served;
        }
        return List.of(ApiKeys.values());
    }

    private static Collection<Object> brokerListeners(Method inScope) {
        Set<Object> found = new LinkedHashSet<>();
        for (Object listener : inScope.getParameterTypes()[0].getEnumConstants())
            if (listener.toString().endsWith("BROKER"))
                found.add(listener);
        return found;
    }

    private static short[] range(ApiKeys api) throws Exception {
        Method told = method(ApiKeys.class, "toApiVersionForApiResponse");
        if (told != null) {
            for (Object listener : told.getParameterTypes()[1].getEnumConstants())
                if (listener.toString().equals("BROKER"))
                    return ofVersion((Optional<?>) told.invoke(api, false, listener));
        }
        Method stable = method(ApiKeys.class, "toApiVersion");
        if (stable != null)
            return ofVersion((Optional<?>) stable.invoke(api, false));
        Method oldest = method(ApiKeys.class, "oldestVersion");
        if (oldest != null)
            return new short[] {(short) oldest.invoke(api), (short) ApiKeys.class.getMethod("latestVersion").invoke(api)};
        return ofTables(api.id);
    }

    private static short[] ofVersion(Optional<?> version) throws Exception {
        if (version.isEmpty())
            return null;
        Class<?> type = version.get().getClass();
        return new short[] {
            (short) type.getMethod("minVersion").invoke(version.get()),
            (short) type.getMethod("maxVersion").invoke(version.get())};
    }

    private static short[] ofTables(int id) throws Exception {
        Class<?> tables = Class.forName("org.apache.kafka.common.protocol.Protocol");
        Field current = tables.getDeclaredField("CURR_VERSION");
        current.setAccessible(true);  // 0.10.2 hid it
        short newest = ((short[]) current.get(null))[id];
        Object[] schemas = ((Object[][]) tables.getField("REQUESTS").get(null))[id];
        if (schemas == null || schemas.length == 0)
            return null;
        short oldest = 0;
        while (oldest < newest && schemas[oldest] == null)
            oldest++;
        return new short[] {oldest, newest};
    }

    private static Method method(Class<?> type, String name) {
        for (Method each : type.getMethods())
            if (each.getName().equals(name))
                return each;
        return null;
    }
}
