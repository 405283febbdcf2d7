
/* The SQL that db.c runs: the statements, and the steps that make the tables. */


#include "store/db.h"


/* the columns of a document, in the order in which document_row.c reads them */

#define DOCUMENT(name)                                                        \
    "SELECT d.n, d.id, " name ", d.title, d.error, d.state, d.salt, d.bytes," \
    " d.pages, d.to_read, d.read, d.scans, d.hidden, d.chunks, d.attempt,"    \
    " d.made, d.used, d.ocr FROM document d"

#define READING  " WHERE id = ?1 AND attempt = ?2 AND state = 1"


const char *const  vlm_db_sql[VLM_DB_STATEMENTS] = {

    "BEGIN IMMEDIATE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",

    "INSERT INTO session(id, epoch, used) VALUES(?1, ?2, ?3)"
    " ON CONFLICT(id) DO NOTHING",

    "SELECT n, epoch, image FROM session WHERE id = ?1",

    "UPDATE session SET used = ?2, image = coalesce(?3, image) WHERE n = ?1",

    "UPDATE session SET used = ?2, image = NULL, epoch = ?3 WHERE n = ?1",

    "DELETE FROM session WHERE n = ?1",

    "SELECT sessions FROM total",

    "SELECT 1 FROM session WHERE image = ?1 AND used > ?2 LIMIT 1",

    "DELETE FROM entry WHERE session IN (SELECT n FROM session"
    " WHERE used < ?1 ORDER BY used, n LIMIT ?2)",

    "DELETE FROM session WHERE n IN (SELECT n FROM session"
    " WHERE used < ?1 ORDER BY used, n LIMIT ?2)",

    "INSERT INTO entry(session, role, content, image, task, thinking, output,"
    " time, key, body, number)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",

    "DELETE FROM entry WHERE session = ?1 AND n <= (SELECT n FROM entry"
    " WHERE session = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2)",

    "DELETE FROM entry WHERE session = ?1",

    "SELECT count(*) FROM entry WHERE session = ?1",

    "SELECT 1 FROM entry WHERE session = ?1 AND key = ?2 AND time > ?3"
    " LIMIT 1",

    "SELECT role, content, image, task, thinking, output, time, key, body,"
    " number FROM"
    " (SELECT * FROM entry WHERE session = ?1 ORDER BY n DESC LIMIT ?2)"
    " ORDER BY n",

    "SELECT name FROM upload WHERE hash = ?1 AND bytes = ?2 AND secure = ?3",

    "INSERT OR REPLACE INTO upload(hash, bytes, secure, name)"
    " VALUES(?1, ?2, ?3, ?4)",

    "DELETE FROM upload WHERE name = ?1",

    "INSERT INTO document(id, salt, sha256, name, bytes, made, used)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6)",

    DOCUMENT("d.name") " WHERE d.salt = ?1 AND d.sha256 = ?2",

    DOCUMENT("d.name") " WHERE d.id = ?1",

    "UPDATE document SET used = ?2 WHERE n = ?1",

    "UPDATE document SET state = 0, attempt = 0, error = ''"
    " WHERE n = ?1 AND state = 3 AND rest <= ?2",

    "DELETE FROM document WHERE n = ?1",

    "SELECT s.id FROM document d JOIN link l ON l.document = d.n"
    " JOIN session s ON s.n = l.session WHERE d.salt = ?1 AND d.state = 2"
    " ORDER BY l.added DESC LIMIT 1",

    "SELECT state, count(*) FROM document GROUP BY state",

    "SELECT d.n, d.id, d.state, d.rows + ifnull((SELECT length(v.vectors)"
    " FROM vector v WHERE v.document = d.n), 0), max(d.used, coalesce((SELECT"
    " max(s.used) FROM link l JOIN session s ON s.n = l.session"
    " WHERE l.document = d.n), 0)), EXISTS(SELECT 1 FROM link l"
    " WHERE l.document = d.n)"
    " FROM document d WHERE d.n > ?1 ORDER BY d.n LIMIT ?2",

    "INSERT INTO link(session, document, name, added) VALUES(?1, ?2, ?3, ?4)"
    " ON CONFLICT(session, document) DO UPDATE SET name = excluded.name",

    "SELECT name FROM link WHERE session = ?1 AND document = ?2",

    "SELECT count(*) FROM link WHERE session <> ?1 AND document = ?2",

    "DELETE FROM link WHERE session = ?1 AND document = ?2",

    "DELETE FROM link WHERE session = ?1",

    "SELECT count(*), coalesce(sum(d.chunks), 0) FROM link l"
    " JOIN document d ON d.n = l.document"
    " WHERE l.session = ?1 AND l.document <> ?2",

    DOCUMENT("l.name") " JOIN link l ON l.document = d.n"
    " WHERE l.session = ?1 ORDER BY l.added, l.document LIMIT ?2",

    "UPDATE document SET read = 0, state = iif(attempt < ?1, 0, 3),"
    " error = iif(attempt < ?1, '', ?2) WHERE state = 1",

    /* sessions take turns; a document that none has comes last */

    DOCUMENT("d.name") " WHERE d.state = 0 ORDER BY (SELECT min(s.read)"
    " FROM link l JOIN session s ON s.n = l.session WHERE l.document = d.n)"
    " NULLS LAST, d.n LIMIT 1",

    "UPDATE document SET state = 1, attempt = attempt + 1 WHERE n = ?1",

    "UPDATE session SET read = ?2"
    " WHERE n IN (SELECT session FROM link WHERE document = ?1)",

    "UPDATE document SET pages = ?3, to_read = ?4, read = ?5" READING,

    "UPDATE document SET state = 0, attempt = attempt - ?3, read = 0" READING,

    "UPDATE document SET state = 3, error = ?3, rest = ?4" READING,

    "UPDATE document SET state = 2, title = ?3, read = ?4, scans = ?5,"
    " hidden = ?6, chunks = ?7, rows = ?8, pages = max(pages, ?9),"
    " to_read = max(to_read, ?9), ocr = ?10, error = ?11" READING,

    "INSERT INTO page(document, number, width, height, flags, text, words)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",

    "SELECT width, height, flags, text, words FROM page"
    " WHERE document = ?1 AND number = ?2",

    "INSERT INTO content(document, chunks, terms) VALUES(?1, ?2, ?3)",

    "SELECT chunks, terms FROM content WHERE document = ?1",

    "INSERT OR REPLACE INTO vector(document, model, dim, vectors)"
    " VALUES(?1, ?2, ?3, ?4)",

    "SELECT dim, vectors FROM vector WHERE document = ?1 AND model = ?2",

    DOCUMENT("d.name") " LEFT JOIN vector v ON v.document = d.n"
    " AND v.model = ?1 WHERE d.state = 2 AND d.chunks > 0"
    " AND ifnull(length(v.vectors) <> d.chunks * v.dim, 1)"
    " ORDER BY d.n LIMIT 1",

    "SELECT coalesce(sum(max(d.chunks - ifnull(length(v.vectors) / v.dim, 0),"
    " 0)), 0) FROM document d LEFT JOIN vector v ON v.document = d.n"
    " AND v.model = ?1 WHERE d.state = 2"
};


/*
 * session.epoch   a random number, another one after each reset; so a session
 *                 that was deleted and made again is another one, too
 * session.image   the current picture: a file name in uploads/
 * session.read    when one of its documents was last taken to be read, in
 *                 microseconds since 1970
 * entry.time      microseconds since 1970, as session.used
 * entry.key       of an answer: the request's Idempotency-Key; its body's hash
 *                 and the turn's number are beside it
 * upload          the newest file of each content and name; the hash only
 *                 finds candidates, their bytes decide
 * document.state  as vlm_document_state_t; rows are the bytes of its pages,
 *                 words, chunks and terms
 * document.rest   one that has failed is not read again before this time
 * link            which session has which document, and under which name
 * content         of a document: all its chunks and their terms, as one row
 *                 because a search reads them all; vector beside it, because
 *                 vectors come later: those of the first chunks, until all
 *                 are there
 * total           one row, kept by triggers: counting reads that row
 *
 * PRAGMA user_version counts the steps that a database has had; an older one
 * gets those that it lacks.
 */

const char *const  vlm_db_schema[VLM_DB_SCHEMA] = {

    "CREATE TABLE session("
    " n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL,"
    " image TEXT, used INTEGER NOT NULL);"
    "CREATE TABLE entry("
    " n INTEGER PRIMARY KEY, session INTEGER NOT NULL, role INTEGER NOT NULL,"
    " content TEXT NOT NULL, image TEXT, task TEXT, thinking TEXT,"
    " output TEXT, time INTEGER NOT NULL);"
    "CREATE INDEX entry_session ON entry(session, n);"
    "CREATE TABLE upload("
    " hash INTEGER NOT NULL, bytes INTEGER NOT NULL, secure TEXT NOT NULL,"
    " name TEXT NOT NULL, PRIMARY KEY(hash, bytes, secure)) WITHOUT ROWID;"
    "CREATE TABLE total(sessions INTEGER NOT NULL);"
    "INSERT INTO total VALUES(0);"
    "CREATE TRIGGER session_more AFTER INSERT ON session"
    " BEGIN UPDATE total SET sessions = sessions + 1; END;"
    "CREATE TRIGGER session_less AFTER DELETE ON session"
    " BEGIN UPDATE total SET sessions = sessions - 1; END;"
    "PRAGMA user_version = 1;",

    /* for the eviction of old rows */

    "CREATE INDEX session_used ON session(used);"
    "CREATE INDEX session_image ON session(image);"
    "CREATE INDEX upload_name ON upload(name);"
    "PRAGMA user_version = 2;",

    /* for requests that are repeated */

    "ALTER TABLE entry ADD COLUMN key TEXT;"
    "ALTER TABLE entry ADD COLUMN body INTEGER;"
    "ALTER TABLE entry ADD COLUMN number INTEGER;"
    "PRAGMA user_version = 3;",

    /* documents; triggers remove whatever belongs to a row that goes */

    "CREATE TABLE document("
    " n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, salt INTEGER NOT NULL,"
    " sha256 BLOB NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL DEFAULT '',"
    " error TEXT NOT NULL DEFAULT '', state INTEGER NOT NULL DEFAULT 0,"
    " bytes INTEGER NOT NULL, rows INTEGER NOT NULL DEFAULT 0,"
    " pages INTEGER NOT NULL DEFAULT 0, to_read INTEGER NOT NULL DEFAULT 0,"
    " read INTEGER NOT NULL DEFAULT 0, scans INTEGER NOT NULL DEFAULT 0,"
    " hidden INTEGER NOT NULL DEFAULT 0, chunks INTEGER NOT NULL DEFAULT 0,"
    " attempt INTEGER NOT NULL DEFAULT 0,"
    " made INTEGER NOT NULL, used INTEGER NOT NULL, UNIQUE(salt, sha256));"
    "CREATE INDEX document_state ON document(state, n);"
    "CREATE TABLE link("
    " session INTEGER NOT NULL, document INTEGER NOT NULL, name TEXT NOT NULL,"
    " added INTEGER NOT NULL, PRIMARY KEY(session, document)) WITHOUT ROWID;"
    "CREATE INDEX link_document ON link(document);"
    "CREATE TABLE page("
    " n INTEGER PRIMARY KEY, document INTEGER NOT NULL, number INTEGER NOT NULL,"
    " width REAL NOT NULL, height REAL NOT NULL, flags INTEGER NOT NULL,"
    " text TEXT NOT NULL, words BLOB NOT NULL, UNIQUE(document, number));"
    "CREATE TABLE content("
    " document INTEGER PRIMARY KEY, chunks BLOB NOT NULL, terms BLOB NOT NULL);"
    "CREATE TABLE vector("
    " document INTEGER PRIMARY KEY, model INTEGER NOT NULL, dim INTEGER NOT NULL,"
    " vectors BLOB NOT NULL);"
    "CREATE TRIGGER document_less AFTER DELETE ON document BEGIN"
    " DELETE FROM link WHERE document = old.n;"
    " DELETE FROM page WHERE document = old.n;"
    " DELETE FROM content WHERE document = old.n;"
    " DELETE FROM vector WHERE document = old.n; END;"
    "CREATE TRIGGER session_unlinked AFTER DELETE ON session"
    " BEGIN DELETE FROM link WHERE session = old.n; END;"
    "PRAGMA user_version = 4;",

    /* pages whose words are OCR's */

    ("ALTER TABLE document ADD COLUMN ocr INTEGER NOT NULL DEFAULT 0;"
     "PRAGMA user_version = 5;"),

    /* sessions take turns at the reading, and slow files rest */

    ("ALTER TABLE session ADD COLUMN read INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE document ADD COLUMN rest INTEGER NOT NULL DEFAULT 0;"
     "PRAGMA user_version = 6;")
};
