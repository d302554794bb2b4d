package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/api/resource"
	kubernetes "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// named are the types that have no parameters.
var named = map[string]*cel.Type{
	"dyn": cel.DynType, "any": cel.AnyType, "bool": cel.BoolType, "int": cel.IntType, "uint": cel.UintType,
	"double": cel.DoubleType, "string": cel.StringType, "bytes": cel.BytesType, "null": cel.NullType,
	"timestamp": cel.TimestampType, "duration": cel.DurationType, "type": cel.TypeType,
	"quantity": kubernetes.QuantityType, "url": kubernetes.URLType, "ip": kubernetes.IPType, "cidr": kubernetes.CIDRType,
	"semver": kubernetes.SemverType, "format": kubernetes.FormatType, "authorizer": library.AuthorizerType,
	"resourceCheck": library.ResourceCheckType,
}

// parseType reads a type like list(map(string, int)).
func parseType(text string) (*cel.Type, error) {
	text = strings.TrimSpace(text)
	if kind, ok := named[text]; ok {
		return kind, nil
	}
	name, rest, ok := strings.Cut(text, "(")
	if !ok || !strings.HasSuffix(rest, ")") {
		return nil, fmt.Errorf("unknown type %q", text)
	}
	var parameters []*cel.Type
	for _, part := range split(strings.TrimSuffix(rest, ")")) {
		parameter, err := parseType(part)
		if err != nil {
			return nil, err
		}
		parameters = append(parameters, parameter)
	}
	switch {
	case name == "list" && len(parameters) == 1:
		return cel.ListType(parameters[0]), nil
	case name == "optional" && len(parameters) == 1:
		return cel.OptionalType(parameters[0]), nil
	case name == "map" && len(parameters) == 2:
		return cel.MapType(parameters[0], parameters[1]), nil
	}
	return nil, fmt.Errorf("unknown type %q", text)
}

// split is at the commas that are outside of parentheses.
func split(text string) []string {
	var parts []string
	depth, start := 0, 0
	for at, letter := range text {
		switch letter {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[start:at])
				start = at + 1
			}
		}
	}
	return append(parts, text[start:])
}

// decode makes Go's values of JSON's: a number without point or exponent is an int64.
// What JSON does not have is an object with one key: {"$uint": "1"}, {"$double": "NaN"}, {"$bytes": BASE64},
// {"$timestamp": RFC3339}, {"$duration": "1s"}, {"$quantity": "1Gi"}, {"$map": [[key, value], ...]}.
func decode(value any) (any, error) {
	switch value := value.(type) {
	case json.Number:
		if whole, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return whole, nil
		}
		return value.Float64()
	case []any:
		items := make([]any, len(value))
		for index, item := range value {
			decoded, err := decode(item)
			if err != nil {
				return nil, err
			}
			items[index] = decoded
		}
		return items, nil
	case map[string]any:
		if len(value) == 1 {
			for key, content := range value {
				if strings.HasPrefix(key, "$") {
					return decodeTagged(key, content)
				}
			}
		}
		members := make(map[string]any, len(value))
		for key, member := range value {
			decoded, err := decode(member)
			if err != nil {
				return nil, err
			}
			members[key] = decoded
		}
		return members, nil
	}
	return value, nil
}

func decodeTagged(tag string, content any) (any, error) {
	text, _ := content.(string)
	switch tag {
	case "$uint":
		return strconv.ParseUint(text, 10, 64)
	case "$double":
		return strconv.ParseFloat(text, 64)
	case "$bytes":
		decoded, err := base64.StdEncoding.DecodeString(text)
		return types.Bytes(decoded), err
	// As a schema's formats give them.
	case "$timestamp":
		parsed, err := time.Parse(time.RFC3339Nano, text)
		return types.Timestamp{Time: parsed}, err
	case "$duration":
		parsed, err := time.ParseDuration(text)
		return types.Duration{Duration: parsed}, err
	case "$quantity":
		quantity, err := resource.ParseQuantity(text)
		return kubernetes.Quantity{Quantity: &quantity}, err
	case "$map":
		members := map[ref.Val]ref.Val{}
		for _, entry := range content.([]any) {
			pair, err := decode(entry)
			if err != nil {
				return nil, err
			}
			key := types.DefaultTypeAdapter.NativeToValue(pair.([]any)[0])
			members[key] = types.DefaultTypeAdapter.NativeToValue(pair.([]any)[1])
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, members), nil
	}
	return nil, fmt.Errorf("unknown tag %s", tag)
}

// canonical is a text that tells a value and its type.
func canonical(value ref.Val) string {
	switch value := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(value))
	case types.Int:
		return strconv.FormatInt(int64(value), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10) + "u"
	case types.Double:
		return canonicalDouble(float64(value))
	case types.String:
		return quoted(string(value))
	case types.Bytes:
		return `b"` + hex.EncodeToString(value) + `"`
	case types.Timestamp:
		return "timestamp(" + value.Time.UTC().Format(time.RFC3339Nano) + ")"
	case types.Duration:
		return "duration(" + strconv.FormatInt(int64(value.Duration), 10) + "ns)"
	case *types.Type:
		return "type(" + value.TypeName() + ")"
	case *types.Optional:
		if !value.HasValue() {
			return "optional.none()"
		}
		return "optional.of(" + canonical(value.GetValue()) + ")"
	case kubernetes.Quantity:
		return "quantity(" + value.Quantity.String() + ")"
	case *kubernetes.Quantity:
		// A sum or a difference.
		return "quantity(" + value.Quantity.String() + ")"
	case kubernetes.URL:
		return "url(" + value.URL.String() + ")"
	case kubernetes.IP:
		return "ip(" + value.Addr.String() + ")"
	case kubernetes.CIDR:
		return "cidr(" + value.Prefix.String() + ")"
	case kubernetes.Semver:
		return "semver(" + value.Version.String() + ")"
	case kubernetes.Format:
		return "format(" + value.Name + ")"
	case traits.Mapper:
		var entries []string
		for keys := value.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			entries = append(entries, canonical(key)+": "+canonical(value.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case traits.Lister:
		var items []string
		for elements := value.Iterator(); elements.HasNext() == types.True; {
			items = append(items, canonical(elements.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return "<" + value.Type().TypeName() + ">"
}

func canonicalDouble(value float64) string {
	switch {
	case math.IsNaN(value):
		return "NaN"
	case math.IsInf(value, 1):
		return "Infinity"
	case math.IsInf(value, -1):
		return "-Infinity"
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(value, 'e', -1, 64), "e")
	power, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strconv.Itoa(power)
}

func quoted(text string) string {
	line, err := encode(text)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(line))
}
