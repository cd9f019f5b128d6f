"""Generated expressions for `tests/lib/statements.py`: functions and operators with random arguments of many types.

Arguments are mostly of the type that a function wants. What MySQL and MariaDB answer differently on purpose is not made: where
they differ is for golden scripts.
"""

import re

TABLE = "wide"
COLUMNS = {
    "i": ("INT", "int"), "u": ("INT UNSIGNED", "int"), "g": ("BIGINT", "int"), "n": ("TINYINT", "int"),
    "d": ("DECIMAL(10,3)", "dec"), "q": ("DECIMAL(20,0)", "dec"), "f": ("DOUBLE", "dbl"),
    "v": ("VARCHAR(20)", "text"), "c": ("CHAR(8)", "text"), "l": ("VARCHAR(10) CHARACTER SET latin1", "text"), "x": ("TEXT", "text"),
    "k": ("VARBINARY(10)", "bin"), "t": ("DATE", "date"), "m": ("DATETIME", "stamp"), "p": ("DATETIME(3)", "stamp"), "h": ("TIME", "time"),
    "y": ("YEAR", "year"), "e": ("ENUM('a','b','B2','')", "enum"), "s": ("SET('a','b','c')", "set"), "b": ("BIT(9)", "bit"),
}
VALUES = {
    "int": ["0", "1", "2", "3", "5", "10", "31", "100", "127", "NULL"],
    "dec": ["0.000", "1.5", "2.345", "-1.005", "0.5", "-0.5", "99.999", "1234567", "NULL"],
    "dbl": ["0e0", "1e0", "-2.5e0", "0.1e0", "1e10", "1.5e-3", "NULL"],
    "text": ["''", "'a'", "'B'", "'abc'", "'A b'", "'12'", "'1.5x'", "'xyz,a,b'", "'ab '", "' lead'", "NULL"],
    "bin": ["''", "'a'", "'AB'", "x'00ff'", "NULL"],
    "date": ["'2024-02-29'", "'2023-12-31'", "'2024-01-01'", "'1999-03-05'", "'2038-01-19'", "NULL"],
    "stamp": ["'2024-02-29 23:59:59'", "'2023-12-31 00:00:00'", "'2000-01-01 12:34:56'", "'1970-06-15 01:02:03'", "NULL"],
    "time": ["'00:00:00'", "'12:34:56'", "'-01:30:00'", "'100:00:01'", "'23:59:59'", "NULL"],
    "year": ["2024", "1999", "1901", "2155", "NULL"], "enum": ["'a'", "'b'", "'B2'", "''", "NULL"], "set": ["'a'", "'a,c'", "'b,c'", "''", "NULL"],
    "bit": ["b'0'", "b'101'", "b'111111111'", "NULL"],
}
# What a parameter is given beside its own value.
OTHERS = {"int": ["1", "2.5", "3e0"], "dec": ["1", "2.5", "3e0"], "dbl": ["3e0", "-2.5e0"], "text": ["'a'", "'2'"]}
PREFIX = {"date": "DATE", "stamp": "TIMESTAMP", "time": "TIME"}
UNITS = ["DAY", "MONTH", "YEAR", "WEEK", "QUARTER", "HOUR", "MINUTE", "SECOND"]
DATE_UNITS = UNITS[:5]
PAIR_UNITS = {"YEAR_MONTH": "'1-2'", "DAY_HOUR": "'1 5'", "HOUR_MINUTE": "'3:15'", "MINUTE_SECOND": "'70:5'", "DAY_SECOND": "'1 2:3:4'", "HOUR_SECOND": "'-1:2:3'"}
FORMATS = ["'%Y-%m-%d'", "'%H:%i:%s'", "'%W %M %e'", "'%j %U %u'", "'%a %b %D %y'", "'%X-%V %x-%v'", "'%r %T %p'", "'%f%%'", "'%w %k %l %c'"]

# Functions by the kind of what they give: {kind} stands for an expression of that kind.
CALLS = {
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * {small})", "({int} DIV {int})", "({int} % {int})", "(- {int})", "ABS({int})", "SIGN({num})",
        "({int} & {int})", "({int} | {int})", "({int} ^ {int})", "({int} << {small})", "({int} >> {small})", "BIT_COUNT({int})",
        "LENGTH({text})", "CHAR_LENGTH({text})", "ASCII({text})", "ORD({text})", "LOCATE({text}, {text})", "LOCATE('a', {text}, {small})",
        "INSTR({text}, {text})", "STRCMP({text}, {text})", "FIELD({text}, {text}, {text})", "FIND_IN_SET({text}, {text})", "CRC32({text})",
        "BIT_LENGTH({text})", "CAST(INET_ATON('1.2.3.4') AS SIGNED)", "INTERVAL({int}, {small}, {int})", "MOD({int}, {int})",
        "YEAR({date})", "MONTH({date})", "DAY({date})", "DAYOFWEEK({date})", "WEEKDAY({date})", "DAYOFYEAR({date})", "WEEK({date}, {small})", "WEEK({date})",
        "YEARWEEK({date})", "YEARWEEK({date}, {small})", "WEEKOFYEAR({date})", "QUARTER({date})", "TO_DAYS({date})", "TO_SECONDS({stamp})",
        "HOUR({time})", "MINUTE({stamp})", "SECOND({time})", "MICROSECOND({stamp})", "TIME_TO_SEC({timeleaf})", "DATEDIFF({date}, {stamp})",
        "TIMESTAMPDIFF({unit}, {stamp}, {stamp})", "TIMESTAMPDIFF({unit}, {date}, {date})", "EXTRACT({unit} FROM {stamp})", "EXTRACT({pair} FROM {stamp})",
        "PERIOD_ADD(202401, {small})", "PERIOD_DIFF(202401, 199{digit}12)", "UNIX_TIMESTAMP({dateleaf})", "CAST({num} AS SIGNED)", "CAST({digit} AS UNSIGNED)",
        "CEIL({dec})", "FLOOR({dec})", "({any} IS NULL)", "ISNULL({any})", "({bit} + 0)", "({year} + 1)",
        "COALESCE({int}, {int})", "IFNULL({int}, {int})", "IF({bool}, {int}, {int})", "NULLIF({int}, {int})", "GREATEST({int}, {int})", "LEAST({int}, {int}, {int})",
        "(@w := {int})", "CAST({time} AS SIGNED)", "CAST({date} AS SIGNED)", "({date} + 0)", "({time} + 1)",
    ],
    "dec": [
        "({dec} + {dec})", "({dec} - {int})", "({dec} * {dec})", "({dec} / {small})", "({int} / {int})", "ROUND({dec} * 1.00000, {digit})", "ROUND({dec}, -{digit})", "ROUND({dec})",
        "TRUNCATE({dec} * 1.00000, {digit})", "TRUNCATE({dec}, -{digit})", "ABS({dec})", "(- {dec})", "ABS({dec} % {dec})", "ABS(MOD({dec}, {small}))", "CAST({num} AS DECIMAL(12,2))",
        "CAST({text} AS DECIMAL(12,2))", "COALESCE({dec}, {int})", "IF({bool}, {dec}, {int})", "LEAST({dec}, {int})", "GREATEST({dec}, {dec})", "IFNULL({dec}, {int})",
        "CASE {small} WHEN {int} THEN {dec} ELSE {int} END", "({int} + {dec})", "NULLIF({dec}, {dec})",
    ],
    "dbl": ["(- PI())", "ABS(PI())", "(PI() / {small})", "SQRT({num})", "EXP({small})", "ROUND(LN({num}), 6)", "ROUND(LOG({small}, {num}), 6)", "ROUND(LOG2({num}), 5)", "ROUND(LOG10({num}), 5)", "POW({small}, {digit})", "ROUND(SIN({num}), 5)", "ROUND(ATAN({num}), 5)",
            "ROUND(DEGREES({num}), 3)", "PI()", "({dbl} + {num})", "({dbl} * {num})", "({text} + {int})", "ROUND({dbl}, {digit})", "(- {dbl})", "CEIL({dbl})", "FLOOR({dbl})", "({dbl} / {num})", "CAST({text} AS DOUBLE)"],
    "text": [
        "CONCAT({text}, {text})", "CONCAT({any}, {text})", "CONCAT_WS({text}, {text}, {any})", "UPPER({text})", "LOWER({text})", "LEFT({text}, {small})", "RIGHT({text}, {small})",
        "SUBSTRING({text}, {small})", "SUBSTRING({text}, {small}, {small})", "SUBSTRING({text}, -{digit}, {small})", "TRIM({text})", "LTRIM({text})", "RTRIM({text})",
        "TRIM(LEADING {text} FROM {text})", "TRIM(BOTH 'a' FROM {text})", "REPLACE({text}, {text}, 'xy')", "REVERSE({text})", "REPEAT({text}, {digit})", "LPAD({text}, {digit}, '-+')",
        "RPAD({text}, {digit}, '*')", "SUBSTRING_INDEX({text}, ',', {small})", "SUBSTRING_INDEX({text}, {text}, -{digit})", "ELT({digit}, {text}, {text}, {textleaf})", "MAKE_SET({int}, {textleaf}, {textleaf})",
        "EXPORT_SET({int}, 'Y', {text}, ',', {digit})", "INSERT({text}, {small}, {small}, {text})", "HEX({any})", "HEX({text})", "HEX({int})", "BIN({int})", "OCT({int})", "CONV({int}, 10, 2)", "CONV({text}, 36, 10)", "QUOTE({text})",
        "SOUNDEX({text})", "SPACE({digit})", "FORMAT({num}, {digit})", "CHAR({digit} USING utf8mb4)", "MD5({text})", "SHA1({text})", "TO_BASE64({text})", "CAST({any} AS CHAR)", "CAST({any} AS CHAR(3))",
        "DATE_FORMAT({stamp}, {format})", "DATE_FORMAT({date}, {format})", "TIME_FORMAT({time}, '%H:%i:%s')", "DAYNAME({date})", "MONTHNAME({date})", "COALESCE({text}, {any})", "IFNULL({text}, {text})", "IF({bool}, {text}, {any})",
        "CASE WHEN {bool} THEN {text} ELSE {int} END", "NULLIF({text}, {text})", "GREATEST({text}, {text})", "LEAST({text}, {text})", "CONCAT({date}, {time})", "CONCAT({dec})", "CONCAT({dbl})", "CONCAT(CHARSET({any}), 1)",
        "REGEXP_REPLACE({text}, '[a-b]', 'Z')", "COALESCE(NULLIF(REGEXP_SUBSTR({text}, '[a-z]+'), ''), '-')", "CONVERT({text} USING latin1)",
    ],
    "bin": ["UNHEX({text})", "CAST({text} AS BINARY)", "CAST({text} AS BINARY(3))", "REVERSE({bin})", "LEFT({bin}, {small})", "SUBSTRING({bin}, {small})", "HEX({bin})"],
    "date": ["DATE({stamp})", "LAST_DAY({date})", "DATE_ADD({date}, INTERVAL {int} {dunit})", "({date} - INTERVAL {small} {dunit})", "MAKEDATE({year4}, {int})", "FROM_DAYS(7{digit}0000 + {int})", "CAST({stamp} AS DATE)",
             "STR_TO_DATE('2024-1-{digit}', '%Y-%m-%d')", "COALESCE({date}, {date})", "IF({bool}, {date}, {date})", "GREATEST({date}, {date})", "LEAST({date}, {date})"],
    "stamp": ["DATE_ADD({stamp}, INTERVAL {int} {unit})", "DATE_SUB({stamp}, INTERVAL {pairvalue})", "TIMESTAMP({date})", "TIMESTAMP({date}, {time})", "CAST({date} AS DATETIME)", "FROM_UNIXTIME(CAST({int} AS SIGNED) % 2000000000)", "({stamp} + INTERVAL {dec} SECOND)",
              "ADDTIME({stamp}, {time})", "SUBTIME({stamp}, {time})", "COALESCE({stamp}, {date})", "CONVERT_TZ({stampleaf}, '+00:00', '+05:30')", "TIMESTAMPADD({unit}, {int}, {stamp})", "IFNULL({stamp}, {stamp})", "GREATEST({stamp}, {date})", "IF({bool}, {stamp}, {date})"],
    "time": ["TIME({stamp})", "SEC_TO_TIME({int})", "MAKETIME({small}, {small}, {small})", "TIMEDIFF({time}, {time})", "ADDTIME({time}, {time})", "SUBTIME({time}, {time})", "CAST({stamp} AS TIME)", "COALESCE({time}, {time})", "CAST({digit} AS TIME)"],
    "bool": ["({int} + 0 = {num})", "({text} = {text})", "({text} < {text})", "({num} < {num})", "({date} = {date})", "({date} < {stamp})", "({stamp} <=> {stamp})", "({time} > {time})", "({text} LIKE {text})", "({text} REGEXP '^[ab]')",
             "({int} BETWEEN {int} AND {num})", "({text} BETWEEN {text} AND {text})", "({date} BETWEEN {date} AND {date})", "({int} + 0 IN ({int}, {num}))", "({text} IN ({text}, {text}))", "({date} IN ({date}, {stamp}))", "({set} = {text})", "({enum} = {text})",
             "({enum} = {small})", "({set} & {small})", "({bit} = {small})", "({year} > {year4})", "({enum} < {enum})", "({bin} = {bin})", "({binleaf} < {text})", "(NOT {bool})", "({bool} AND {bool})", "({bool} OR {bool})", "({bool} XOR {bool})", "({bool} IS TRUE)",
             "({dec} <=> {dec})", "(({int}, {text}) = ({int}, {text}))", "(({int}, {date}) < ({int}, {date}))", "({num} <> {num})", "({dec} IN ({int}, {dec}))", "({text} NOT IN ({text}, {text}))", "({dbl} >= {num})", "({text} = {int} + 0)", "({dec} = {text})"],
    "year": [], "enum": [], "set": [], "bit": [],
}

# Not as arguments: text that is compared as text and then taken for a number, and what loses its sign or decimals there as a number.
OUTERMOST = {"GREATEST({text}, {text})", "LEAST({text}, {text})", "COALESCE({time}, {time})", "CAST({any} AS CHAR(3))"}
# Not in changes: strict mode refuses text that CAST cuts, there it is a warning; INSERT .. SELECT keeps the decimals of ROUND there
# and rounds quotients twice.
CUTS = {"CAST({any} AS CHAR(3))", "CAST({text} AS BINARY(3))", "({dec} / {small})", "({int} / {int})", *(call for call in CALLS["dbl"] if call.startswith("ROUND"))}
INNER = {kind: [call for call in calls if call not in OUTERMOST] for kind, calls in CALLS.items()}
# What gives ASCII goes with text of any character set here; there some of it does not.
ASCII = re.compile(r"(?<!\w)(CONV|OCT|BIN|HEX|FORMAT|SOUNDEX|MD5|SHA1|TO_BASE64|MONTHNAME|DAYNAME|CHAR|DATE_FORMAT|TIME_FORMAT|EXPORT_SET|REGEXP_SUBSTR|QUOTE|CAST)\(")


class Expressions:
    """Expressions over the table's columns from a generator of randomness."""

    def __init__(self, random):
        self.r = random
        self.params, self.changing = None, False

    def leaf(self, kind):
        if kind == "bool":
            return self.r.choice(["TRUE", "FALSE", "NULL", "1", "0"])
        names = [name for name, (_, of) in COLUMNS.items() if of == kind]
        if self.r.random() < .65 or kind in ("year", "enum", "set", "bit"):
            return self.r.choice(names)
        # A bare NULL has types of its own here, and bytes that are no text are refused beside text there.
        text = self.r.choice([text for text in VALUES[kind] if text != "NULL" and not text.startswith("x'")])
        if self.params is not None and kind in ("int", "dec", "dbl", "text"):
            self.params.append((kind, text))
            return "?"
        return PREFIX.get(kind, "") + text

    def __call__(self, kind, depth=2):
        r = self.r
        if kind == "num":
            kind = r.choice(["int", "dec", "dbl"])
        elif kind == "any":
            kind = r.choice(["int", "dec", "text", "date", "stamp", "time", "year", "enum", "set"])
        if depth <= 0 or not CALLS[kind] or r.random() < .25:
            return self.leaf(kind)
        return self.fill(r.choice([call for call in INNER[kind] if not (self.changing and call in CUTS)]), depth - 1)

    def fill(self, call, depth):
        r, out = self.r, []
        for at, piece in enumerate(call.replace("}", "{").split("{")):
            if at % 2 == 0:
                out.append(piece)
            elif piece == "small":
                out.append(r.choice(["0", "1", "2", "3", "4", "7", "-1"]))
            elif piece == "digit":
                out.append(str(r.randint(1, 5)))
            elif piece == "year4":
                out.append(r.choice(["2024", "1999", "2000"]))
            elif piece == "unit":
                out.append(r.choice(UNITS))
            elif piece == "dunit":
                out.append(r.choice(DATE_UNITS))
            elif piece.endswith("leaf"):
                out.append(self.leaf(piece.removesuffix("leaf")))
            elif piece == "pair":
                out.append(r.choice(list(PAIR_UNITS)))
            elif piece == "pairvalue":
                out.append("{1} {0}".format(*r.choice(list(PAIR_UNITS.items()))))
            elif piece == "format":
                out.append(r.choice(FORMATS))
            else:
                out.append(self(piece, depth))
        return "".join(out)


    def statement(self):
        pick = self.r.random()
        if pick < .12:
            return self.change()
        if pick < .24:
            return self.prepared()
        return self.query()

    def query(self):
        kinds = [kind for kind, calls in CALLS.items() if calls]
        # Parameters are numbered in the order in which they are made.
        column = lambda kind: self.fill(self.r.choice(CALLS[kind]), self.r.choice([0, 1]))
        if self.r.random() < .2:
            text = f"SELECT COUNT(*), COUNT(DISTINCT {column(self.r.choice(kinds))}), MAX({self('int', 1)}), SUM({self('dec', 1)}) FROM {TABLE}"
            order = ""
        else:
            text = f"SELECT id, {', '.join(map(column, self.r.choices(kinds, k=self.r.randint(1, 3))))} FROM {TABLE}"
            order = " ORDER BY id"
        return text + (f" WHERE {self('bool', 1)}" if self.r.random() < .5 else "") + order


    def change(self):
        """A change of the table, what it made of it, and back again."""
        self.changing = True
        text = self.changed()
        self.changing = False
        return ["BEGIN", text, f"SELECT * FROM {TABLE} ORDER BY id", "ROLLBACK"]

    def changed(self):
        r = self.r
        # What no text is a number of: strict mode refuses it here, MariaDB does not always.
        where = f"WHERE {self.fill(r.choice([call for call in CALLS['bool'] if 'text' not in call or 'LIKE' in call]), 0)}"
        names = r.sample(list(COLUMNS), r.randint(1, 3))
        pick = r.random()
        if pick < .5:
            made = ", ".join(f"{name} = {self(self.kind_of(name), r.choice([1, 1, 2]))}" for name in names)
            text = f"UPDATE {r.choice(['', '', 'IGNORE '])}{TABLE} SET {made} {where} ORDER BY id{r.choice(['', ' DESC', ' LIMIT 5'])}"
        elif pick < .7:
            text = f"DELETE FROM {TABLE} {where} ORDER BY id{r.choice(['', ' LIMIT 3'])}"
        else:
            made = ", ".join(self(self.kind_of(name), r.choice([1, 1, 2])) for name in names)
            text = f"INSERT {r.choice(['', '', 'IGNORE '])}INTO {TABLE} (id, {', '.join(names)}) SELECT id + 100, {made} FROM {TABLE} {where} ORDER BY id"
        return text

    def kind_of(self, name):
        """The kind of a column's values; now and then another one, which has to be converted: to a DATE or TIME not, whose bounds differ."""
        kind = COLUMNS[name][1]
        return kind if kind in ("date", "time") or self.r.random() < .8 else "int"

    def prepared(self):
        """A query with values in place of literals, run for two sets of them. The peer, which keeps types of the first, gets literals."""
        self.params = []
        text = self.query()
        params, self.params = self.params, None
        if not params:
            return text
        out = [("PREPARE q FROM '" + text.replace("\\", "\\\\").replace("'", "''") + "'", "DO 0")]
        values = [value for _, value in params]
        for each in (values, [self.r.choice([*OTHERS[kind], value]) for kind, value in params], values):
            out += [f"SET @p{at} = {value}" for at, value in enumerate(each)]
            literals = iter(each)
            out.append(("EXECUTE q USING " + ", ".join(f"@p{at}" for at in range(len(each))), re.sub(r"\?", lambda _: next(literals), text)))
        return out


def setup(random):
    """The table of all types, and its rows."""
    columns = ", ".join(f"{name} {of}" for name, (of, _) in COLUMNS.items())
    yield f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, {columns}, KEY (i, v), KEY (e), KEY (t), KEY (y), KEY (s))"
    rows = ", ".join(f"({at}, {', '.join(random.choice(VALUES[kind]) for _, kind in COLUMNS.values())})" for at in range(24))
    yield f"INSERT INTO {TABLE} VALUES {rows}"
