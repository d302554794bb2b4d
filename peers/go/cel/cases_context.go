package main

import "encoding/json"

// variableCases have variables, sizes and budgets.
func variableCases() []Request {
	variables := map[string]string{
		"i": "int", "u": "uint", "d": "double", "s": "string", "b": "bool", "y": "bytes", "x": "dyn", "t": "timestamp", "r": "duration",
		"li": "list(int)", "ls": "list(string)", "ld": "list(dyn)", "lm": "list(map(string, string))", "ms": "map(string, string)", "mi": "map(string, int)", "md": "map(string, dyn)", "ll": "list(list(string))", "mm": "map(string, list(string))", "mn": "map(int, string)",
		"q": "quantity", "o": "optional(int)", "a.b": "int", "by": "list(bytes)",
	}
	sizes := map[string]uint64{
		"s": 100, "y": 50, "li": 20, "ls": 30, "ls.@items": 40, "lm": 5, "lm.@items": 6, "lm.@items.@values": 7, "lm.@items.@keys": 8, "ms": 10, "ms.@keys": 11, "ms.@values": 12, "mi": 13, "ll": 4, "ll.@items": 5, "ll.@items.@items": 6, "x": 9, "ms.k": 33, "mm": 3, "mm.@values": 4, "mm.@values.@items": 5, "by": 3, "by.@items": 9,
	}
	activation := map[string]any{
		"i": 7, "u": tag("$uint", "8"), "d": 1.5, "s": "hello world", "b": true, "y": tag("$bytes", "AQID"), "x": map[string]any{"a": 1, "b": []any{1, 2}, "c": "text", "d": map[string]any{"e": nil}},
		"t": tag("$timestamp", "2024-02-29T12:34:56.789Z"), "r": tag("$duration", "1h30m"), "li": []any{3, 1, 2}, "ls": []any{"a", "bb", "ccc"}, "ld": []any{1, "a", true, nil}, "lm": []any{map[string]any{"k": "v"}, map[string]any{"k": "w"}},
		"ms": map[string]any{"k": "v"}, "mi": map[string]any{"k": 5}, "md": map[string]any{"k": 1.5}, "ll": []any{[]any{"a"}, []any{"b", "c"}}, "mm": map[string]any{"k": []any{"v"}}, "mn": tag("$map", []any{[]any{1, "one"}, []any{2, "two"}}),
		"q": tag("$quantity", "1Gi"), "a.b": 4, "by": []any{tag("$bytes", "AQ==")},
	}
	texts := []string{
		`i`, `i + 1 == 8`, `u * 2u`, `d / 2.0`, `s + s`, `s.size() + i`, `b && i > 5`, `y + y`, `y.size()`, `x.a + 1`, `x.b[1]`, `x.c + 'x'`, `x.d.e == null`, `x.missing`, `has(x.missing)`, `has(x.a)`, `has(x.d.e)`, `x.a.b`, `x['a']`, `x.b.all(v, v > 0)`, `x.all(k, k != 'z')`, `x.c.startsWith('t')`, `x.a == 1.0`, `x.a < 2.5`, `x.?missing.orValue(5)`, `x.?d.?e`, `t.getFullYear()`, `t - r`, `t + r > t`, `r > duration('1h')`, `string(r)`, `t.getMilliseconds()`, `t.getHours('+01:00')`,
		`li.all(v, v > 0)`, `li.exists(v, v == 2)`, `li.map(v, v * 2)`, `li.filter(v, v > 1)`, `li.exists_one(v, v == 1)`, `li.map(v, li.map(w, v * w))`, `li.all(v, li.all(w, li.all(z, v + w + z > 0)))`, `li.sum()`, `li.max()`, `li.isSorted()`, `li.indexOf(2)`, `li.sort()`, `li.sortBy(v, -v)`, `li.reverse()`, `li.distinct()`, `li.slice(1, 2)`, `li.slice(i - 6, 2)`, `li + li`, `li[0]`, `li[i]`, `i in li`, `li == [3, 1, 2]`, `li.includes(3)`, `li.lastIndexOf(1)`,
		`ls.all(v, v.startsWith('a'))`, `ls.exists(v, v.contains('c'))`, `ls.map(v, v + '!')`, `ls.map(v, v.size())`, `ls.join(',')`, `ls.join()`, `ls.max()`, `ls.isSorted()`, `ls.sort()`, `ls.indexOf('bb')`, `ls.all(v, v.matches('^[a-z]+$'))`, `ls == ['a']`, `'bb' in ls`, `ls.distinct()`, `ls.sortBy(v, v)`, `ls.sortBy(v, size(v))`, `sets.contains(ls, ['a'])`, `sets.equivalent(ls, ls)`, `sets.intersects(ls, ls)`, `ls.includes('a')`, `ls.map(v, v.upperAscii()).join('-')`, `ls[0] + ls[1]`, `ls.filter(v, v != 'a').map(v, v.replace('b', 'xx'))`, `ls.reverse()`, `ls.slice(0, 1)`, `ls.flatten()`, `by.max()`, `by.sort()`,
		`lm.all(m, m.k != '')`, `lm.all(m, m.all(k, m[k].size() < 5))`, `lm.map(m, m.k)`, `lm.exists(m, has(m.k) && m.k == 'w')`, `lm[0].k`, `lm.transformList(n, m, m.k + string(n))`, `ms.k`, `ms['k']`, `ms.all(k, k.size() > 0)`, `ms.all(k, v, k != v)`, `ms.exists(k, ms[k] == 'v')`, `ms.transformMap(k, v, v + k)`, `ms.transformList(k, v, k + v)`, `ms.transformMapEntry(k, v, {v: k})`, `'k' in ms`, `ms == {'k': 'v'}`, `ms.size()`, `ms.map(k, ms[k])`, `mi.k + 1`, `mi.all(k, mi[k] > 0)`, `md.k == 1.5`, `md.k + 1`, `md.k + 1.0`, `ll.all(l, l.all(v, v != ''))`, `ll.flatten()`, `ll[1][0]`, `ll.map(l, l.join()).join()`, `mm.k[0]`, `mm.all(k, vs, vs.all(v, v.startsWith(k)))`, `mm.all(k, mm[k].size() > 0)`, `mn[1]`, `mn[3]`, `2 in mn`, `q.isGreaterThan(quantity('1Mi'))`, `q.add(quantity('1Mi'))`, `q == quantity('1024Mi')`, `a.b + 1`,
		`s.matches('h.*d')`, `s.matches(s)`, `s.find('w.*')`, `s.findAll('[a-z]+')`, `s.findAll(s, 2)`, `s.split(' ')`, `s.split('')`, `s.substring(1, 3)`, `s.substring(i)`, `s.indexOf('w')`, `s.lastIndexOf('o')`, `s.charAt(i)`, `s.lowerAscii()`, `s.upperAscii().lowerAscii()`, `s.replace('l', 'LL')`, `s.replace(s, s)`, `s.replace('', s)`, `s.replace('o', '', 1)`, `s.trim()`, `strings.quote(s)`, `'%s: %d'.format([s, i])`, `s.format([])`, `s.contains('wor')`, `s.contains(s)`, `s.startsWith('hell')`, `s.endsWith(s)`, `s < 'x'`, `s == s`, `s != 'hello'`, `s in ls`, `s + string(i)`, `size(s + s + s)`, `bytes(s)`, `string(y)`, `url(s)`, `isURL(s)`, `isIP(s)`, `isCIDR(s)`, `ip.isCanonical('1.2.3.4')`, `isQuantity(s)`, `isSemver(s)`, `format.dns1123Label().validate(s)`, `format.named(s)`, `format.uri().validate(s).hasValue()`, `jsonpatch.escapeKey(s)`, `i > 5 ? s : 'short'`, `b ? ls : []`, `b ? li : [1, 2, 3]`, `(b ? ls : ls + ls).all(v, v.size() < 10)`, `ld.all(v, v != 'z')`, `ld.map(v, type(v))`, `ld.filter(v, type(v) == int)`, `ld[0] + 1`, `ld[1] + 1`, `timestamp(s)`, `duration(s)`, `int(s)`, `double(s)`, `lists.range(i)`, `lists.range(3).map(v, li[v])`, `[s, s].all(v, v == s)`, `{'a': s}.all(k, k == 'a')`, `[1, 2, 3].map(v, s)`, `[s].map(v, v + v)[0].size()`, `o`, `dyn(s) == dyn(i)`, `x == x`, `x.b == [1, 2]`, `x.b + x.b`, `x.c < x.a`, `x.a && true`, `x.foo()`, `x.c.foo()`, `x.size()`, `x.a.size()`, `x.b.map(v, v + x.a)`, `[x.a, x.c]`, `x.c in ls`, `x.a in li`,
		`cidr('10.0.0.0/8').containsIP(s)`, `li.map(v, v).map(v, v).map(v, v)`, `li.all(v, s.matches('x' + string(v)))`, `ls.exists(v, s.contains(v))`, `ls.all(v, ls.all(w, v == w || v != w))`, `has(ms.k) ? ms.k : ''`, `has(ms.z) && ms.z == 'x'`, `!has(ms.z) || ms.z == 'x'`,
	}
	var requests []Request
	for index, text := range texts {
		request := Request{Expression: text, Types: variables, Activation: activation}
		if index%2 == 0 {
			request.Sizes = sizes
		}
		requests = append(requests, only(request))
	}
	for _, budget := range []uint64{1, 5, 20, 100} {
		for _, text := range []string{`li.all(v, v > 0)`, `[1, 2, 3].map(v, v + 1)`, `s.matches('h.*d')`, `i + i + i + i + i + i`, `ls.join(s)`, `lists.range(50).all(v, lists.range(50).all(w, v + w >= 0))`} {
			requests = append(requests, only(Request{Expression: text, Types: variables, Activation: activation, Budget: budget}))
		}
	}
	for _, text := range []string{`lists.range(1000).all(v, lists.range(1000).all(w, v + w >= 0))`, `lists.range(10).map(v, s).join().size() > 5`, `'x'.replace('', 'yyyyyyyyyy').replace('', 'zzzzzzzzzz').replace('', 'zzzzzzzzzzzz').replace('', 'zzzzzzzzzzz').size()`} {
		requests = append(requests, only(Request{Expression: text, Types: variables, Activation: activation}))
	}
	// Of a version before the list library was renewed.
	for _, text := range []string{`[1].includes(1)`, `[1, 2].sum()`, `lists.range(3)`} {
		requests = append(requests, Request{Expression: text, Version: "1.36"})
	}
	return requests
}

func tag(name string, content any) any { return map[string]any{name: content} }

// only keeps the variables whose names occur in the expression.
func only(request Request) Request {
	types, sizes, activation := map[string]string{}, map[string]uint64{}, map[string]any{}
	for name, kind := range request.Types {
		if occurs(request.Expression, name) {
			types[name] = kind
			if value, ok := request.Activation[name]; ok {
				activation[name] = value
			}
		}
	}
	for path, size := range request.Sizes {
		for name := range types {
			if path == name || len(name) < len(path) && path[:len(name)+1] == name+"." {
				sizes[path] = size
			}
		}
	}
	request.Types, request.Sizes, request.Activation = types, sizes, activation
	return request
}

func occurs(text, name string) bool {
	for at := 0; at+len(name) <= len(text); at++ {
		if text[at:at+len(name)] == name && (at == 0 || !letter(text[at-1])) && (at+len(name) == len(text) || !letter(text[at+len(name)])) {
			return true
		}
	}
	return false
}

func letter(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func authorizerCases() []Request {
	who := &authorizer{
		User: "jane", Groups: []string{"dev", "ops"}, Request: &asked{Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "default", Name: "web"},
		Rows: []row{
			{When: map[string]string{"user": "jane", "verb": "get", "path": "/healthz"}, Decision: "allow", Reason: "health is open"},
			{When: map[string]string{"verb": "get", "resource": "pods", "namespace": "default", "fieldSelector": "spec.nodeName = n1"}, Decision: "allow", Reason: "own node"},
			{When: map[string]string{"verb": "list", "resource": "pods", "labelSelector": "app in (a,b),tier=x"}, Decision: "allow", Reason: "labelled"},
			{When: map[string]string{"verb": "list", "resource": "pods", "fieldSelector": "error: invalid selector: 'a'; can't understand 'a'"}, Decision: "deny", Error: "bad field selector"},
			{When: map[string]string{"verb": "list", "resource": "pods", "labelSelector": `error: found '(', expected: !, identifier, or 'end of string'`}, Decision: "deny", Error: "bad label selector"},
			{When: map[string]string{"verb": "create", "resource": "pods", "group": "", "version": "*", "namespace": "default", "subresource": "exec", "name": "p"}, Decision: "allow", Reason: "exec"},
			{When: map[string]string{"user": "system:serviceaccount:default:bot", "groups": "system:serviceaccounts,system:serviceaccounts:default", "verb": "delete"}, Decision: "allow", Reason: "bot"},
			{When: map[string]string{"verb": "update", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "default", "name": "web"}, Decision: "deny", Reason: "no scaling"},
			{When: map[string]string{"verb": "fail"}, Decision: "noopinion", Error: "webhook down", Reason: "ignored"},
		},
	}
	texts := []string{
		`authorizer.path('/healthz').check('get').allowed()`, `authorizer.path('/healthz').check('get').reason()`, `authorizer.path('/metrics').check('get').allowed()`, `authorizer.path('').check('get').allowed()`, `authorizer.path('  ').check('get').allowed()`,
		`authorizer.group('').resource('pods').namespace('default').fieldSelector('spec.nodeName=n1').check('get').allowed()`, `authorizer.group('').resource('pods').namespace('default').check('get').allowed()`, `authorizer.group('').resource('pods').labelSelector('app in (a,b),tier=x').check('list').reason()`, `authorizer.group('').resource('pods').fieldSelector('a').check('list').error()`, `authorizer.group('').resource('pods').labelSelector('(').check('list').errored()`, `authorizer.group('').resource('pods').labelSelector('').fieldSelector('').check('list').allowed()`,
		`authorizer.group('').resource('pods').subresource('exec').namespace('default').name('p').check('create').allowed()`, `authorizer.group('').resource('pods').subresource('exec').namespace('default').check('create').allowed()`, `authorizer.group('apps').resource('').check('get').allowed()`, `authorizer.group('apps').resource('  ')`, `authorizer.serviceAccount('default', 'bot').group('').resource('pods').check('delete').allowed()`, `authorizer.serviceAccount('default', 'other').group('').resource('pods').check('delete').allowed()`, `authorizer.serviceAccount('not@a#valid!namespace', 'validname')`, `authorizer.serviceAccount('valid.example.com', 'invalid@*name')`, `authorizer.serviceAccount('valid.example.com', 'name')`, `authorizer.serviceAccount('', 'a')`,
		`authorizer.group('').resource('pods').check('fail').errored()`, `authorizer.group('').resource('pods').check('fail').error()`, `authorizer.group('').resource('pods').check('fail').reason()`, `authorizer.group('').resource('pods').check('get').error()`, `authorizer.group('').resource('pods').check('get').errored()`, `authorizer`, `authorizer.path('/a')`, `authorizer.group('a')`, `authorizer.group('a').resource('b')`, `authorizer.group('a').resource('b').check('c')`, `authorizer.path('/healthz').check('get').allowed() && authorizer.path('/healthz').check('get').allowed() && authorizer.path('/healthz').check('get').allowed()`, `[1, 2, 3].all(x, authorizer.path('/healthz').check('get').allowed())`, `authorizer.group('').name('a')`, `authorizer.check('get')`, `authorizer.path('/a').allowed()`, `authorizer.group(1)`, `authorizer == authorizer`, `authorizer.group('').resource('pods') == authorizer.group('').resource('pods')`, `type(authorizer)`, `authorizer.path('/x').check('get').foo()`, `authorizer.path('/healthz').check('get') == authorizer.path('/healthz').check('get')`,
	}
	var requests []Request
	for _, text := range texts {
		requests = append(requests, Request{Expression: text, Types: map[string]string{"authorizer": "authorizer"}, Authorizer: who})
	}
	for _, text := range []string{`authorizer.requestResource.check('update').reason()`, `authorizer.requestResource.check('get').allowed()`, `authorizer.requestResource.name('x').check('update').reason()`} {
		requests = append(requests, Request{Expression: text, Environment: "condition", Authorizer: who})
	}
	return requests
}

const ruleSchema = `{"type":"object","properties":{
	"replicas":{"type":"integer"},"min":{"type":"integer"},"max":{"type":"integer","nullable":true},"ratio":{"type":"number"},"name":{"type":"string","maxLength":20},"free":{"type":"string"},"on":{"type":"boolean"},
	"port":{"x-kubernetes-int-or-string":true},"at":{"type":"string","format":"date-time"},"day":{"type":"string","format":"date"},"for":{"type":"string","format":"duration"},"raw":{"type":"string","format":"byte"},"kind-of":{"type":"string"},"a.b":{"type":"string"},"namespace":{"type":"string"},"__x":{"type":"string"},"a/b":{"type":"string"},
	"mode":{"type":"string","enum":["on","off","automatic"]},
	"tags":{"type":"array","maxItems":10,"x-kubernetes-list-type":"set","items":{"type":"string","maxLength":10}},
	"list":{"type":"array","items":{"type":"string"}},
	"items":{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["key"],"items":{"type":"object","properties":{"key":{"type":"string","maxLength":8},"value":{"type":"integer"}}}},
	"labels":{"type":"object","maxProperties":4,"additionalProperties":{"type":"string","maxLength":16}},
	"deep":{"type":"object","additionalProperties":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"}}}}},
	"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"open":{"x-kubernetes-preserve-unknown-fields":true},
	"embedded":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}
}}`

func ruleCases() []Request {
	var self map[string]any
	if err := json.Unmarshal([]byte(`{"replicas":3,"min":1,"max":null,"ratio":0.5,"name":"web","free":"text","on":true,"port":"http","at":"2024-02-29T12:00:00Z","day":"2024-02-29","for":"1h","raw":"AQID","kind-of":"k","a.b":"dot","namespace":"ns","__x":"u","a/b":"slash","mode":"on","tags":["b","a"],"list":["x","y"],"items":[{"key":"a","value":1},{"key":"b","value":2}],"labels":{"l":"v"},"deep":{"d":[{"x":1}]},"any":{},"embedded":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"n":1}}}`), &self); err != nil {
		panic(err)
	}
	var old map[string]any
	if err := json.Unmarshal([]byte(`{"replicas":2,"name":"web","tags":["a","b"],"list":["y","x"],"items":[{"key":"b","value":2},{"key":"a","value":1}]}`), &old); err != nil {
		panic(err)
	}
	texts := []string{
		`self.replicas >= self.min`, `self.replicas <= self.max`, `has(self.max)`, `self.max == null`, `self.ratio < 1.0`, `self.ratio < 1`, `self.name.startsWith('w')`, `self.name == self.free`, `self.free.matches('^t')`, `self.on`, `self.port == 'http'`, `type(self.port) == string ? self.port == 'http' : self.port == 80`, `self.port == 80`, `self.at > timestamp('2024-01-01T00:00:00Z')`, `self.day == timestamp('2024-02-29T00:00:00Z')`, `self.day.getFullYear() == 2024`, `self.for > duration('30m')`, `self.raw == b'\x01\x02\x03'`, `self.kind__dash__of == 'k'`, `self.a__dot__b == 'dot'`, `self.__namespace__ == 'ns'`, `self.namespace == 'ns'`, `self.__underscores__x == 'u'`, `self.a__slash__b == 'slash'`, "self.`kind-of` == 'k'", "self.`a.b` == 'dot'", "self.`a/b` == 'slash'", `self.__x == 'u'`,
		`self.mode == 'on'`, `self.mode in ['on', 'off']`, `self.tags.all(t, t.size() < 5)`, `self.tags == oldSelf.tags`, `self.list == oldSelf.list`, `self.items == oldSelf.items`, `self.tags + ['c'] == ['b', 'a', 'c']`, `self.tags + oldSelf.tags == self.tags`, `self.items.all(i, i.value > 0)`, `self.items.exists(i, i.key == 'a' && i.value == 1)`, `self.items.map(i, i.key).join() == 'ab'`, `self.items[0].key == 'a'`, `self.items + oldSelf.items == self.items`, `self.labels.all(k, self.labels[k].size() < 5)`, `self.labels.l == 'v'`, `has(self.labels.z)`, `self.deep.all(k, self.deep[k].all(v, v.x > 0))`, `self.deep.d[0].x == 1`, `has(self.any.x)`, `self.any == self.any`, `self.open == 1`, `self.embedded.metadata.name == 'p'`, `self.embedded.kind == 'Pod'`, `self.embedded.spec.n == 1`, `self.embedded.metadata.generateName == ''`, `self.replicas == oldSelf.replicas + 1`, `oldSelf.replicas < self.replicas`, `!has(oldSelf.min) || oldSelf.min == 1`, `self.missing == 1`, `self.missing.deep`, `self.replicas == '3'`, `self.replicas`, `self.name`, `self`, `self.items.exists(i, i.nope == 1)`, `self == oldSelf`, `self.min`, `oldSelf.min == 1`, `self.tags.isSorted()`, `self.tags.sum() == 1`, `self.list.all(x, self.list.all(y, x == y || x != y))`, `self.list.all(x, self.list.all(y, self.list.all(z, x + y + z != '')))`, `self.free.matches(self.free)`, `self.name.matches(self.name)`, `self.tags.exists(t, self.free.contains(t))`, `has(self.name) && has(self.free)`, `self.?name.orValue('') == 'web'`, `self.?max.hasValue()`, `self.?missing.hasValue()`, `self.labels.transformMap(k, v, v + k) == {'l': 'vl'}`, `self.labels.exists(k, v, k == 'l')`, `size(self.items) < 10`, `self.items.size() == 2 && self.tags.size() == 2`, `type(self) == type(oldSelf)`, `type(self.replicas) == int`, `quantity(self.name).isInteger()`, `isQuantity(self.name)`, `ip(self.free).family() == 4`, `cidr(self.free).containsIP('1.2.3.4')`, `url(self.free).getHost() == ''`, `format.dns1123Label().validate(self.name).hasValue()`, `semver(self.name).major() == 1`, `self.free.split(',').all(x, x != '')`, `self.free.replace('a', 'bb').size() < 10`, `self.free.find('t') == 't'`, `self.list.sort() == ['x', 'y']`, `self.list.distinct().size() == 2`, `self.list.join(',').size() < 100`, `sets.contains(self.tags, ['a'])`, `self.items.sortBy(i, i.value)[0].key == 'a'`, `1 / 0 == 1`, `self.list[5] == 'x'`, `authorizer.path('/x').check('get').allowed()`,
	}
	var requests []Request
	for _, text := range texts {
		requests = append(requests, Request{Expression: text, Environment: "rule", Schema: json.RawMessage(compact(ruleSchema)), Activation: map[string]any{"self": self, "oldSelf": old}})
	}
	optional := []string{`oldSelf.hasValue()`, `!oldSelf.hasValue() || oldSelf.value().replicas <= self.replicas`, `oldSelf.?replicas.orValue(0) < self.replicas`, `oldSelf.optMap(o, o.replicas == 2).orValue(true)`, `oldSelf.replicas == 1`, `oldSelf == optional.none()`, `oldSelf.orValue(self) == self`}
	for _, text := range optional {
		for _, activation := range []map[string]any{{"self": self, "oldSelf": old}, {"self": self}} {
			requests = append(requests, Request{Expression: text, Environment: "rule", Schema: json.RawMessage(compact(ruleSchema)), OptionalOldSelf: true, Activation: activation})
		}
	}
	for _, message := range []string{`'replicas are ' + string(self.replicas)`, `self.name`, `1`, `self.`, `self.missing`, `'%d of %s'.format([self.replicas, self.name])`, `self.list[7]`, `oldSelf.name + self.name`, `self.free + self.free`, `''`, `'a\nb'`} {
		requests = append(requests, Request{Expression: `self.replicas > 5`, Environment: "rule", Schema: json.RawMessage(compact(ruleSchema)), Message: message, Activation: map[string]any{"self": self, "oldSelf": old}})
	}
	scalars := []struct {
		schema     string
		expression string
		self       any
	}{
		{`{"type":"string","maxLength":5}`, `self.size() < 3`, "ab"}, {`{"type":"string"}`, `self == 'a'`, "a"}, {`{"type":"integer"}`, `self > 1`, 2}, {`{"type":"number"}`, `self > 1.5`, 2}, {`{"type":"boolean"}`, `self`, true}, {`{"type":"array","items":{"type":"integer"}}`, `self.all(x, x > 0)`, []any{1, 2}}, {`{"type":"array","maxItems":3,"items":{"type":"integer"}}`, `self.all(x, x > 0)`, []any{1, 2}}, {`{"type":"object","additionalProperties":{"type":"integer"}}`, `self.all(k, self[k] > 0)`, map[string]any{"a": 1}}, {`{"x-kubernetes-int-or-string":true}`, `self == 1`, 1}, {`{"x-kubernetes-int-or-string":true}`, `self == '50%'`, "50%"}, {`{"x-kubernetes-int-or-string":true}`, `type(self) == int && self > 0`, 1}, {`{"type":"string","format":"date-time"}`, `self < timestamp('2030-01-01T00:00:00Z')`, "2024-01-01T00:00:00Z"}, {`{"type":"string","format":"date-time"}`, `self < timestamp('2030-01-01T00:00:00Z')`, "x"}, {`{"type":"string","format":"byte"}`, `self.size() == 3`, "AQID"}, {`{"type":"object","properties":{"a":{"type":"object","nullable":true,"properties":{"b":{"type":"string"}}}}}`, `has(self.a) && self.a != null`, map[string]any{"a": nil}}, {`{"type":"object","properties":{"a":{"type":"string","default":"x"}}}`, `self.a == 'x'`, map[string]any{"a": "x"}}, {`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, `self.a.size() > 0`, map[string]any{"a": "x"}},
		{`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `self.a == 1`, map[string]any{"a": 1}}, {`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"b":{"type":"integer"}}}`, `self.b == 1`, map[string]any{"b": 1}}, {`{"type":"array","items":{"type":"array","items":{"type":"string"}}}`, `self.all(x, x.all(y, y != ''))`, []any{[]any{"a"}}},
	}
	for _, scalar := range scalars {
		requests = append(requests, Request{Expression: scalar.expression, Environment: "rule", Schema: json.RawMessage(scalar.schema), Activation: map[string]any{"self": scalar.self}})
	}
	return requests
}

func compact(text string) string {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(line)
}

func admissionCases() []Request {
	activation := map[string]any{
		"object":    map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"app": "web"}}, "data": map[string]any{"k": "MQ=="}, "type": "Opaque"},
		"oldObject": nil, "params": map[string]any{"max": 3},
		"request":         map[string]any{"kind": map[string]any{"group": "", "version": "v1", "kind": "Secret"}, "resource": map[string]any{"group": "", "version": "v1", "resource": "secrets"}, "name": "a", "namespace": "b", "operation": "CREATE", "userInfo": map[string]any{"username": "jane", "groups": []any{"dev"}}, "dryRun": false},
		"namespaceObject": map[string]any{"metadata": map[string]any{"name": "b", "labels": map[string]any{"env": "prod"}}},
	}
	who := &authorizer{User: "jane", Request: &asked{Resource: "secrets", Namespace: "b", Name: "a"}, Rows: []row{{When: map[string]string{"verb": "get"}, Decision: "allow"}}}
	texts := []string{
		`object.metadata.name == 'a'`, `object.metadata.labels.app`, `has(object.metadata.annotations)`, `object.data.all(k, k.size() < 5)`, `oldObject == null`, `oldObject.metadata`, `request.operation == 'CREATE'`, `request.userInfo.username`, `request.userInfo.groups.exists(g, g == 'dev')`, `request.kind.kind`, `request.name + '/' + request.namespace`, `request.dryRun`, `request.missing`, `request.subResource`, `has(request.subResource)`, `request.userInfo.extra`, `has(request.userInfo.extra)`, `request.options`, `namespaceObject.metadata.labels.env`, `namespaceObject.metadata.bogus`, `namespaceObject.status.phase`, `params.max > 2`, `params.missing`, `authorizer.requestResource.check('get').allowed()`, `authorizer.group('').resource('secrets').check('delete').allowed()`, `object.?spec.?replicas.orValue(1)`, `variables.x`, `object.metadata.name + 1`, `object.spec.replicas > 1`, `self`, `object`, `request`, `type(object)`, `type(request)`, `Object{}`, `Object{spec: Object.spec{replicas: 1}}`, `Object{metadata: Object.metadata{labels: {'a': 'b'}}}`, `[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: 'x'}]`, `JSONPatch{op: 'remove', path: '/a'}`, `JSONPatch{bogus: 1}`, `Object{spec: Object.other{}}`, `jsonpatch.escapeKey('k8s.io/my~label')`, `jsonpatch.escapeKey('')`, `Object{a: 1} == Object{a: 1}`, `Object.spec{a: [1, 2]}.a`, `type(Object{})`, `has(Object{a: 1}.a)`, `Object{a: 1}.b`, `has(Object{a: 1}.b)`, `JSONPatch{op: 1}`, `[JSONPatch{op: 'test', path: '/x', from: '/y', value: {'a': 1}}].map(p, p.op)`,
	}
	var requests []Request
	for _, environment := range []string{"condition", "policy", "mutation"} {
		for _, text := range texts {
			requests = append(requests, Request{Expression: text, Environment: environment, Activation: activation, Authorizer: who})
		}
	}
	return requests
}
