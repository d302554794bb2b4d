package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// inventory lists what the environments have: libraries, macros, functions and overloads, and
// what mutations have besides.
func inventory() string {
	set := environment.MustBaseEnvSet(version.MajorMinor(1, 37))
	env := set.NewExpressionsEnv()
	var text strings.Builder
	libraries := env.Libraries()
	sort.Strings(libraries)
	for _, name := range libraries {
		fmt.Fprintf(&text, "library %s\n", name)
	}
	for _, validator := range env.Validators() {
		fmt.Fprintf(&text, "validator %s\n", validator.Name())
	}
	var macros []string
	for _, macro := range env.Macros() {
		macros = append(macros, fmt.Sprintf("macro %s\n", macro.MacroKey()))
	}
	sort.Strings(macros)
	text.WriteString(strings.Join(macros, ""))
	base := functions(env)
	for _, line := range base {
		text.WriteString("function " + line)
	}
	differing(&text, "stored", base, functions(set.StoredExpressionsEnv()))
	mutations, err := set.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			common.ResolverEnvOption(&mutation.DynamicTypeResolver{}),
			library.JSONPatch(),
		},
	})
	if err != nil {
		panic(err)
	}
	differing(&text, "mutation", base, functions(mutations.NewExpressionsEnv()))
	earlier := functions(environment.MustBaseEnvSet(version.MajorMinor(1, 36)).NewExpressionsEnv())
	differing(&text, "1.36", base, earlier)
	return text.String()
}

func functions(env *cel.Env) []string {
	var lines []string
	for name, function := range env.Functions() {
		for _, overload := range function.OverloadDecls() {
			var arguments []string
			for _, argument := range overload.ArgTypes() {
				arguments = append(arguments, argument.String())
			}
			style := "global"
			if overload.IsMemberFunction() {
				style = "member"
			}
			strictness := ""
			if overload.IsNonStrict() {
				strictness = " nonstrict"
			}
			lines = append(lines, fmt.Sprintf("%s %s %s (%s) -> %s%s\n", name, overload.ID(), style,
				strings.Join(arguments, ", "), overload.ResultType(), strictness))
		}
	}
	sort.Strings(lines)
	return lines
}

func differing(text *strings.Builder, where string, base, other []string) {
	has := map[string]int{}
	for _, line := range base {
		has[line]++
	}
	for _, line := range other {
		if has[line] == 0 {
			fmt.Fprintf(text, "%s has function %s", where, line)
		}
		has[line]--
	}
	for _, line := range base {
		if 0 < has[line] {
			fmt.Fprintf(text, "%s lacks function %s", where, line)
		}
	}
}
