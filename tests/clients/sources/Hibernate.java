import java.util.concurrent.Callable;
import org.hibernate.HibernateException;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate over pgJDBC against a served clinic: one line of JSON for each step, {"step": "LIBRARY: STEP", "error": ...}. */
public class Hibernate {
    private static final String MAPPING = "<?xml version='1.0'?><!DOCTYPE hibernate-mapping PUBLIC '-//Hibernate/Hibernate Mapping"
        + " DTD 3.0//EN' 'http://www.hibernate.org/dtd/hibernate-mapping-3.0.dtd'><hibernate-mapping><class entity-name='Patient'"
        + " table='patients'><id name='id' column='patient_id' type='long'/><property name='sex' type='string'/>"
        + "<property name='age' type='long'/></class></hibernate-mapping>";
    private static SessionFactory factory;

    private static void step(String name, Callable<Boolean> work) {
        String error = "null";
        try {
            if (!work.call()) {
                error = "\"wrong\"";
            }
        } catch (Exception failure) {
            error = "\"" + String.valueOf(failure.getMessage()).replaceAll("[^ -!#-\\[\\]-~]", " ") + "\"";
        }
        System.out.println("{\"step\": \"Hibernate 3: " + name + "\", \"error\": " + error + "}");
    }

    private static int grouped(long age) {
        Session session = factory.openSession();
        String asked = "select p.sex, count(*) from Patient p where p.age > :age group by p.sex";
        int groups = session.createQuery(asked).setLong("age", age).list().size();
        session.close();
        return groups;
    }

    private static boolean refused(java.util.function.Function<Session, Object> work) {
        Session session = factory.openSession();
        session.beginTransaction();
        try {
            work.apply(session);
        } catch (HibernateException error) {
            return error.getCause().getMessage().contains("rows");
        } finally {
            session.getTransaction().rollback();
            session.close();
        }
        return false;
    }

    public static void main(String[] arguments) {
        String[] place = System.getenv("PLACE").split("[=;]");
        Configuration settings = new Configuration()
            .setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
            .setProperty("hibernate.connection.url", "jdbc:postgresql://" + place[1] + ":" + place[3] + "/" + place[5])
            .setProperty("hibernate.connection.username", System.getenv("PGUSER"))
            .setProperty("hibernate.connection.password", System.getenv("PGPASSWORD"))
            .setProperty("hibernate.default_entity_mode", "dynamic-map")
            .setProperty("hibernate.hbm2ddl.auto", "validate")
            .addXML(MAPPING);
        step("connect", () -> (factory = settings.buildSessionFactory()) != null);
        step("grouped", () -> grouped(41) == 2);
        step("refusal", () -> refused(session -> session.createQuery("from Patient p where p.age > 43").list()));
        step("question after it", () -> grouped(42) == 2);
        step("exists", () -> refused(session -> session.createQuery("select 1 from Patient").setMaxResults(1).list()));
        step("find", () -> refused(session -> session.get("Patient", 7L)));
        factory.close();
    }
}
