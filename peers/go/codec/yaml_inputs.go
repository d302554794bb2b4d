package main

var yamlInputs = append(scalars(), []string{
	"", "---\n", "# nothing\n", "a: 1\n---\nb: 2\n", "{}", "[]", "a: {b: [1, 'x', \"y\"]}\n", "- 1\n- a: b\n  c: d\n-\n  - 2\n",
	"a: 1\na: 2\n", "a: {b: 1, b: 2}\n", "true: 1\n1: 2\n1.5: 3\n", "~: 1\n", "yes: a\n0x10: b\n", "? [a]\n: b\n",
	"a: &x {b: 1}\nc: *x\n", "a: &x {b: 1, d: 2}\nc: {<<: *x, d: 3}\n", "base: &b {k: v}\nl: {<<: [*b, {z: 1}]}\n", "c: *missing\n",
	"a: |\n  line one\n  line two\nb: >\n  folded\n  text\n\nc: |-\n  stripped\nd: |+\n  kept\n\n", "a: 'it''s'\nb: \"tab\\tnew\\nx\\u00e9\\x41\"\n", "a:\n- b\n- c\n",
	"a: !!str 5\nb: !!int '7'\nc: !!float 1\nd: !!binary aGk=\ne: !!bool 'true'\nf: !foo bar\ng: !!null ''\n", "a: \"<&>\"\n", "a: b: c\n", "a: [1\n", "\tx: 1\n", "a: 'x\n", "'a': \"b\"\n\"c d\": e\n",
	"stringData:\n  a: yes\n  b: 0123\n  c: 1.50\n  d: 12:30\n  e: ~\n  f: 1e3\n  g: 12345678901234567890\n  h: 0.1\n", "type: yes\nimmutable: true\ndata:\n  a: aGk=\n", "type: 5\n", "metadata:\n  name: 123\n  labels:\n    a: true\n    b: 1.10\n",
	"kind: Secret\napiVersion: v1\nmetadata:\n  name: x\n  creationTimestamp: null\ndata:\n  p: aGk=\ntype: Opaque\n", "a: 2024-01-01\nb: 2024-01-01T00:00:00Z\n", "list:\n  - name: a\n    value: |\n      x\n      y\n  - name: b\n", "a: \"\"\nb: ''\nc:\nd: null\n",
	"text: \"multi\\nline\\n\"\nt2: \"no end\\nline\"\nt3: \"  lead\"\nt4: \"trail \"\nt5: \"\\n\"\nt6: \"a\\n\\n b\\n\"\nt7: \"\\ttab\\n\"\n", "a: 'a: b'\nb: 'a #b'\nc: '- x'\nd: '@x'\ne: '`x'\nf: '%x'\ng: '!x'\nh: '&x'\ni: '*x'\nj: '|'\nk: '>'\nl: '{x'\nm: '[x'\nn: ','\no: '?'\np: ':'\nq: '-'\nr: '='\ns: '<<'\nt: '#'\nu: 'a:'\nv: ':a'\nw: '? a'\nx: '---'\ny: '...'\n",
	"long: \"aaaaaaaaaa bbbbbbbbbbbb cccccccccccc dddddddddddd eeeeeeeeeeee ffffffffffff gggggggggggg hhhhhhhhhh iiiiiiiiii\"\n", "a: \"é ü \\u2028 \\U0001f600\"\nb: \"\\x01\\x7f\\x85\"\n", "n: [1, -1, 1.5, 1e21, 0, 100000000000, 123456789.123]\n", "a: [[], {}, [[]], [{}]]\n",
	"x: y z\nlonger: word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word \nquoted: \"# word  word word  word word  word word  word word  word word  word word  word word  word word  word word  word word  word word  word \"\ndouble: \"\\tword  word word  word word  word word  word word  word word  word word  word word  word word  word word  word word  word word  word \"\n",
	"k10: 1\nk9: 2\nk01: 3\nk1: 4\nk-: 5\nk_: 6\nK: 7\n\"\": 8\na/b: 9\na.b: 10\n1a: 11\n", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: 1\n",
	"- - a\n  - b\n- - c: d\n    e:\n    - f\n", "a: {x: [{y: [1, [2]]}]}\n", "5\n", "text\n", "\"a\\nb\"\n", "a: |\n  x", "a: >-\n  x\n  y",
}...)

// Each scalar is tried as it stands, as the value of a key.
func scalars() []string {
	inputs := []string{}
	for _, text := range []string{
		"y", "Y", "yes", "Yes", "YES", "yEs", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF",
		"~", "null", "Null", "NULL", "nUll", ".nan", ".NaN", ".inf", "-.inf", "+.Inf", ".INF",
		"0", "1", "-1", "+1", "0644", "010", "08", "09.5", "0o644", "0x1F", "0X1F", "0b101", "-0x10", "-010", "1_000", "1__0", "_1", "0x_1", "1_", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809",
		"1.5", "-1.5", "1.", ".5", "1e3", "1E3", "1e+3", "1.5e-3", "1e400", "1_0.5", "1.5.5", "12:30", "1:2:3", "2024-01-01", "2024-01-01T00:00:00Z", "2024-1-1", "2001-12-14 21:59:43.10 -5", "=", "<<", "0x", "0b2", "0o8", "+", "-", ".", "..", "1e", "e1", "--1", "+-1", "0.10", "100", "1,000", "a b", "a  b", "x#y", "x #y", "infinity", "nan", "NaN", "Inf",
	} {
		inputs = append(inputs, "a: "+text+"\n")
	}
	return inputs
}
