//! Random expressions, most of them with types that fit.

/// A small generator with a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).expect("below a usize")
    }
}

/// Makes expressions.
pub(crate) struct Generator {
    random: Random,
    /// Variables of comprehensions: type and name.
    scope: Vec<(String, String)>,
    names: usize,
}

/// Deepest nesting.
const DEPTH: usize = 4;

/// What has no parts: variables and literals, by type.
const LEAVES: &[(&str, &[&str])] = &[
    ("i", &["i", "0", "1", "2", "-3", "7", "9223372036854775807", "size(s)", "m.k"]),
    ("u", &["u", "0u", "5u", "18446744073709551615u"]),
    ("d", &["d", "0.0", "-1.5", "1e3", "0.1"]),
    ("s", &["s", "''", "'a'", "'b,c'", "'l'", "'é'", "\"q\\\"x\"", "'10.0.0.1'", "'1.2.3'", "'1Gi'"]),
    ("b", &["b", "true", "false"]),
    ("y", &["y", "b''", "b'ab'"]),
    ("r", &["r", "duration('1s')", "duration('-2m')"]),
    ("t", &["t", "timestamp('2023-01-01T00:00:00Z')", "timestamp(0)"]),
    ("li", &["li", "[]", "[1]", "[2, 2, 1]", "lists.range(3)"]),
    ("ls", &["ls", "['b', 'a']", "['x']", "s.split('')"]),
    ("m", &["m", "{'a': 1}", "{'k': 2}"]),
    ("q", &["q", "quantity('1Gi')", "quantity('-5')", "quantity('0.5')"]),
    ("o", &["optional.none()", "optional.of(1)", "m.?k", "m[?'z']", "li.first()"]),
    (
        "x",
        &[
            "x",
            "x.a",
            "x.l",
            "x.s",
            "x.z",
            "x.l[0]",
            "dyn(1)",
            "dyn('a')",
            "dyn([1])",
            "dyn(1.0)",
            "dyn(null)",
        ],
    ),
];

/// What has parts: `<T>` is an expression of type T, `%` and `&` are new names, and `<%T:R>` and
/// `<%T&U:R>` expressions of type R that may use them.
const FORMS: &[(&str, &[&str])] = &[
    (
        "i",
        &[
            "<i> + <i>",
            "<i> - <i>",
            "<i> * <i>",
            "<i> / <i>",
            "<i> % <i>",
            "-(<i>)",
            "<s>.size()",
            "size(<li>)",
            "<li>[<i>]",
            "<li>.sum()",
            "<li>.max()",
            "<li>.min()",
            "<li>.indexOf(<i>)",
            "<ls>.lastIndexOf(<s>)",
            "<s>.indexOf(<s>)",
            "<s>.lastIndexOf(<s>, <i>)",
            "<s>.indexOf(<s>, <i>)",
            "int(<s>)",
            "int(<d>)",
            "int(<u>)",
            "<b> ? <i> : <i>",
            "<m>.k",
            "<m>[<s>]",
            "<o>.orValue(<i>)",
            "<o>.value()",
            "<t>.getMonth()",
            "<t>.getHours('+02:00')",
            "<r>.getMinutes()",
            "<q>.compareTo(<q>)",
            "<q>.asInteger()",
            "<m>.size()",
            "<y>.size()",
            "int(<t>)",
            "ip(<s>).family()",
            "semver(<s>).major()",
            "(<i>)",
        ],
    ),
    ("u", &["<u> + <u>", "<u> * <u>", "<u> - <u>", "uint(<i>)", "uint(<s>)", "<b> ? <u> : <u>", "uint(<d>)"]),
    (
        "d",
        &[
            "<d> + <d>",
            "<d> / <d>",
            "double(<i>)",
            "double(<s>)",
            "-(<d>)",
            "<q>.asApproximateFloat()",
            "<d> * <d>",
        ],
    ),
    (
        "s",
        &[
            "<s> + <s>",
            "string(<i>)",
            "string(<d>)",
            "string(<b>)",
            "string(<y>)",
            "string(<r>)",
            "string(<t>)",
            "<s>.upperAscii()",
            "<s>.lowerAscii()",
            "<s>.trim()",
            "<s>.charAt(<i>)",
            "<s>.substring(<i>)",
            "<s>.substring(<i>, <i>)",
            "<s>.replace(<s>, <s>)",
            "<s>.replace(<s>, <s>, <i>)",
            "<ls>.join()",
            "<ls>.join(<s>)",
            "<ls>[<i>]",
            "<s>.find('[a-l]+')",
            "<s>.find(<s>)",
            "strings.quote(<s>)",
            "'%s|%d'.format([<s>, <i>])",
            "'%s %s'.format([<d>, <li>])",
            "'%.2f'.format([<d>])",
            "'%x'.format([<i>])",
            "<s>.format([<i>])",
            "<b> ? <s> : <s>",
            "url('https://a.b:8/' + <s>).getEscapedPath()",
            "<ls>.max()",
            "<m>.map(%, <%s:s>).join()",
        ],
    ),
    (
        "b",
        &[
            "<b> && <b>",
            "<b> || <b>",
            "!<b>",
            "<i> < <i>",
            "<i> == <i>",
            "<i> != <i>",
            "<s> == <s>",
            "<s> <= <s>",
            "<d> >= <d>",
            "<u> > <u>",
            "<i> < <d>",
            "<u> < <i>",
            "<li> == <li>",
            "<ls> == <ls>",
            "<m> == <m>",
            "<x> == <x>",
            "<x> == <i>",
            "<t> < <t>",
            "<r> > <r>",
            "<y> == <y>",
            "<s>.contains(<s>)",
            "<s>.startsWith(<s>)",
            "<s>.endsWith(<s>)",
            "<s>.matches('^[a-z]*$')",
            "<s>.matches(<s>)",
            "<i> in <li>",
            "<s> in <ls>",
            "<s> in <m>",
            "<x> in <li>",
            "<li>.all(%, <%i:b>)",
            "<li>.exists(%, <%i:b>)",
            "<li>.exists_one(%, <%i:b>)",
            "<ls>.all(%, <%s:b>)",
            "<ls>.exists(%, <%s:b>)",
            "<m>.all(%, <%s:b>)",
            "<li>.all(%, &, <%i&i:b>)",
            "<ls>.exists(%, &, <%i&s:b>)",
            "<m>.exists(%, &, <%s&i:b>)",
            "<li>.isSorted()",
            "<ls>.isSorted()",
            "<li>.includes(<i>)",
            "sets.contains(<li>, <li>)",
            "sets.intersects(<ls>, <ls>)",
            "sets.equivalent(<li>, <li>)",
            "has(x.a)",
            "has(x.z)",
            "has(m.z)",
            "<o>.hasValue()",
            "isIP(<s>)",
            "isURL(<s>)",
            "isCIDR(<s>)",
            "isQuantity(<s>)",
            "isSemver(<s>)",
            "<q>.isGreaterThan(<q>)",
            "<q> == <q>",
            "bool(<s>)",
            "<b> == <b>",
            "<b> ? <b> : <b>",
            "cidr('10.0.0.0/8').containsIP(<s>)",
            "<o> == <o>",
            "format.dns1123Label().validate(<s>).hasValue()",
            "<x> && <b>",
            "!<x>",
        ],
    ),
    ("y", &["<y> + <y>", "bytes(<s>)"]),
    ("r", &["<r> + <r>", "<t> - <t>", "<r> - <r>", "<b> ? <r> : <r>"]),
    ("t", &["<t> + <r>", "<t> - <r>", "timestamp(<i>)", "timestamp(string(<t>))"]),
    (
        "li",
        &[
            "<li> + <li>",
            "[<i>, <i>]",
            "<li>.map(%, <%i:i>)",
            "<li>.filter(%, <%i:b>)",
            "<li>.map(%, <%i:b>, <%i:i>)",
            "<ls>.map(%, <%s:i>)",
            "<li>.sort()",
            "<li>.reverse()",
            "<li>.distinct()",
            "<li>.slice(<i>, <i>)",
            "<li>.sortBy(%, <%i:i>)",
            "[<li>, <li>].flatten()",
            "<b> ? <li> : <li>",
            "lists.range(<i>)",
            "<li>.transformList(%, &, <%i&i:i>)",
            "<li>.transformList(%, &, <%i&i:b>, <%i&i:i>)",
            "[<i>, ?<o>]",
            "<m>.transformList(%, &, <%s&i:i>)",
        ],
    ),
    (
        "ls",
        &[
            "<ls> + <ls>",
            "[<s>, <s>]",
            "<ls>.map(%, <%s:s>)",
            "<ls>.filter(%, <%s:b>)",
            "<s>.split(<s>)",
            "<s>.split(<s>, <i>)",
            "<ls>.sort()",
            "<s>.findAll('.l?')",
            "<s>.findAll('[a-z]', <i>)",
            "<li>.map(%, <%i:s>)",
            "<ls>.sortBy(%, <%s:i>)",
            "<ls>.distinct()",
            "<m>.map(%, <%s:s>)",
        ],
    ),
    (
        "m",
        &[
            "{<s>: <i>}",
            "{'k': <i>}",
            "<m>.transformMap(%, &, <%s&i:i>)",
            "<b> ? <m> : <m>",
            "{?'k': <o>}",
            "<ls>.transformMapEntry(%, &, {<%i&s:s>: <%i&s:i>})",
        ],
    ),
    ("q", &["quantity(<s>)", "<q>.add(<q>)", "<q>.sub(<i>)", "<q>.add(<i>)"]),
    (
        "o",
        &[
            "optional.of(<i>)",
            "<m>[?<s>]",
            "<o>.or(<o>)",
            "<li>[?<i>]",
            "<o>.optMap(%, <%i:i>)",
            "<o>.optFlatMap(%, <%i:o>)",
            "optional.ofNonZeroValue(<i>)",
            "<li>.last()",
        ],
    ),
    (
        "x",
        &[
            "dyn(<i>)",
            "dyn(<s>)",
            "dyn(<li>)",
            "dyn(<m>)",
            "<x>.a",
            "<x>[<i>]",
            "<x> + <x>",
            "<x>.?a",
            "type(<x>)",
            "<x>.map(%, <%x:x>)",
            "<b> ? <x> : <x>",
            "<x>.size()",
            "[<x>, <x>]",
            "<x>.b.c",
        ],
    ),
];

/// The types that an expression may have, the more likely ones more than once.
const ROOTS: &[&str] = &["b", "b", "b", "i", "s", "li", "ls", "m", "d", "u", "x", "o", "q", "r", "t", "y"];

/// An expression, with its parts.
#[derive(Clone)]
pub(crate) struct Tree {
    /// The type that was wanted.
    kind: String,
    pieces: Vec<Piece>,
}

#[derive(Clone)]
enum Piece {
    Text(String),
    Part(Tree),
}

impl Tree {
    fn leaf(kind: &str, text: &str) -> Self {
        Self { kind: kind.to_owned(), pieces: vec![Piece::Text(text.to_owned())] }
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Part(part) => Some(part),
            Piece::Text(_) => None,
        })
    }

    /// All that are smaller by one step, the smallest of each part first: what wants the same type in its
    /// place, or a leaf.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let own = self.to_string().len();
        let leaves = options(LEAVES, &self.kind).iter().map(|text| Self::leaf(&self.kind, text));
        let mut found: Vec<Self> = leaves.filter(|leaf| leaf.to_string().len() < own).collect();
        let mut below: Vec<&Self> = self.parts().collect();
        while let Some(part) = below.pop() {
            if part.kind == self.kind {
                found.push(part.clone());
            }
            below.extend(part.parts());
        }
        found.sort_by_key(|tree| tree.to_string().len());
        for (place, piece) in self.pieces.iter().enumerate() {
            let Piece::Part(part) = piece else { continue };
            for smaller in part.smaller() {
                let mut changed = self.clone();
                changed.pieces[place] = Piece::Part(smaller);
                found.push(changed);
            }
        }
        found
    }
}

impl std::fmt::Display for Tree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => formatter.write_str(text),
            Piece::Part(part) => part.fmt(formatter),
        })
    }
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random(seed), scope: Vec::new(), names: 0 }
    }

    /// An expression of any type.
    pub(crate) fn expression(&mut self) -> Tree {
        self.names = 0;
        let root = ROOTS[self.random.below(ROOTS.len())];
        let depth = 1 + self.random.below(DEPTH);
        self.of(root, depth)
    }

    fn of(&mut self, asked: &str, depth: usize) -> Tree {
        // Now and then something else than what fits.
        let wanted = if self.random.below(60) == 0 { ROOTS[self.random.below(ROOTS.len())] } else { asked };
        if depth == 0 {
            let text = self.leaf(wanted);
            return Tree::leaf(asked, &text);
        }
        let forms = options(FORMS, wanted);
        let form = forms[self.random.below(forms.len())];
        self.names += 1;
        let (first, second) = (format!("v{}", self.names), format!("w{}", self.names));
        // Operators within operators.
        let open = form.contains(" ") && !form.ends_with(')') && !form.ends_with(']') && !form.ends_with('}');
        let (mut pieces, mut text) = (Vec::new(), String::from(if open { "(" } else { "" }));
        let mut rest = form;
        while let Some(letter) = rest.chars().next() {
            match letter {
                '<' if rest[1..].starts_with(|next: char| next == '%' || next.is_ascii_lowercase()) => {
                    let end = rest.find('>').expect("closed");
                    let part = &rest[1..end];
                    let shallower = self.random.below(depth);
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    pieces.push(Piece::Part(self.part(part, &first, &second, shallower)));
                    rest = &rest[end + 1..];
                    continue;
                }
                '%' if rest[1..].starts_with(',') => text.push_str(&first),
                '&' if rest[1..].starts_with(',') => text.push_str(&second),
                _ => text.push(letter),
            }
            rest = &rest[letter.len_utf8()..];
        }
        text.push_str(if open { ")" } else { "" });
        pieces.push(Piece::Text(text));
        Tree { kind: asked.to_owned(), pieces }
    }

    fn part(&mut self, part: &str, first: &str, second: &str, depth: usize) -> Tree {
        let Some(bound) = part.strip_prefix('%') else { return self.of(part, depth) };
        let (variables, wanted) = bound.split_once(':').expect("a type");
        let known = self.scope.len();
        for (kind, name) in variables.split('&').zip([first, second]) {
            self.scope.push((kind.to_owned(), name.to_owned()));
        }
        let tree = self.of(wanted, depth);
        self.scope.truncate(known);
        tree
    }

    fn leaf(&mut self, wanted: &str) -> String {
        let variables: Vec<String> =
            self.scope.iter().filter(|(kind, _)| kind == wanted).map(|(_, name)| name.clone()).collect();
        if !variables.is_empty() && self.random.below(3) > 0 {
            return variables[self.random.below(variables.len())].clone();
        }
        let leaves = options(LEAVES, wanted);
        leaves[self.random.below(leaves.len())].to_owned()
    }
}

fn options(table: &'static [(&str, &[&str])], wanted: &str) -> &'static [&'static str] {
    table.iter().find(|(kind, _)| *kind == wanted).map(|(_, options)| *options).expect("a known type")
}
