package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	rules "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	admission "k8s.io/apiserver/pkg/admission/plugin/cel"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// Request is one expression and where it stands.
type Request struct {
	Expression string `json:"expression"`
	// "" and "base": the environment of the version with the variables of Types;
	// "rule": a rule of a custom resource's schema, "object": all rules of a schema against an object;
	// "condition": a match condition; "policy": a validation with params; "mutation": a mutation.
	Environment string `json:"environment,omitempty"`
	// 1.37 when it is not said.
	Version string `json:"version,omitempty"`
	// The variables' types, as CEL prints them.
	Types map[string]string `json:"types,omitempty"`
	// The largest size of what is at a path like self.@items, for the static cost.
	Sizes map[string]uint64 `json:"sizes,omitempty"`
	// The variables' values, see decode.
	Activation map[string]any `json:"activation,omitempty"`
	// Of a rule.
	Schema          json.RawMessage `json:"schema,omitempty"`
	Message         string          `json:"message,omitempty"`
	OptionalOldSelf bool            `json:"optionalOldSelf,omitempty"`
	// The cost that a call may have: 1,000,000 when it is not said.
	Budget     uint64      `json:"budget,omitempty"`
	Authorizer *authorizer `json:"authorizer,omitempty"`
	// "compile" or "evaluate": that is measured for so long at least.
	Bench        string `json:"bench,omitempty"`
	Milliseconds int    `json:"milliseconds,omitempty"`
}

// Answer is what the original says.
type Answer struct {
	// Why it does not compile.
	Refused string  `json:"refused,omitempty"`
	Type    string  `json:"type,omitempty"`
	Min     *uint64 `json:"min,omitempty"`
	Max     *uint64 `json:"max,omitempty"`
	Actual  *uint64 `json:"actual,omitempty"`
	Result  string  `json:"result,omitempty"`
	Error   string  `json:"error,omitempty"`
	// The result depends on the order of a map's keys.
	Varies bool `json:"varies,omitempty"`
	// Of a rule's message expression.
	Message *Answer `json:"message,omitempty"`
	// Of all rules against an object.
	Violations []string `json:"violations,omitempty"`
	Remaining  *int64   `json:"remaining,omitempty"`
	// What one compilation or evaluation takes.
	Nanoseconds float64 `json:"nanoseconds,omitempty"`
}

// selfType is what upstream makes of a clock.
var selfType = regexp.MustCompile(`selfType\d+`)

func ask(request *Request) (answer *Answer, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			answer, err = &Answer{Error: fmt.Sprintf("panic: %v", caught)}, nil
		}
	}()
	if request.Bench != "" {
		return bench(request)
	}
	switch request.Environment {
	case "", "base":
		return inBase(request)
	case "rule":
		return asRule(request)
	case "object":
		return ofObject(request)
	case "condition":
		return inAdmission(request, admission.OptionalVariableDeclarations{HasAuthorizer: true})
	case "policy":
		return inAdmission(request, admission.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true})
	case "mutation":
		return inAdmission(request, admission.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true, HasPatchTypes: true})
	}
	return nil, fmt.Errorf("unknown environment %q", request.Environment)
}

func base(request *Request) (*environment.EnvSet, error) {
	if request.Version == "" {
		return environment.MustBaseEnvSet(version.MajorMinor(1, 37)), nil
	}
	parsed, err := version.ParseGeneric(request.Version)
	if err != nil {
		return nil, err
	}
	return environment.MustBaseEnvSet(parsed), nil
}

func (request *Request) budget() uint64 {
	if request.Budget != 0 {
		return request.Budget
	}
	return limits.PerCallLimit
}

func inBase(request *Request) (*Answer, error) {
	set, err := base(request)
	if err != nil {
		return nil, err
	}
	var options []cel.EnvOption
	for _, name := range sorted(request.Types) {
		kind, err := parseType(request.Types[name])
		if err != nil {
			return nil, err
		}
		options = append(options, cel.Variable(name, kind))
	}
	set, err = set.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options})
	if err != nil {
		return nil, err
	}
	env := set.NewExpressionsEnv()
	answer := &Answer{}
	ast, issues := env.Compile(request.Expression)
	if issues != nil && issues.Err() != nil {
		answer.Refused = issues.String()
		return answer, nil
	}
	answer.Type = ast.OutputType().String()
	cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes(request.Sizes)})
	if err != nil {
		return nil, err
	}
	answer.Min, answer.Max = &cost.Min, &cost.Max
	program, err := env.Program(ast, cel.CostLimit(request.budget()), cel.InterruptCheckFrequency(limits.CheckFrequency))
	if err != nil {
		answer.Error = "program instantiation failed: " + err.Error()
		return answer, nil
	}
	return answer, run(request, program, nil, answer)
}

// run evaluates with the variables of the request, and with those of `known` instead where they are there.
func run(request *Request, program cel.Program, known map[string]any, answer *Answer) error {
	variables := map[string]any{}
	for name, value := range request.Activation {
		decoded, err := decode(value)
		if err != nil {
			return err
		}
		variables[name] = decoded
	}
	if request.Authorizer != nil {
		request.Authorizer.bind(variables)
	}
	for name, value := range known {
		variables[name] = value
	}
	// Go begins a map of two keys at the second in one of eight cases.
	times := 1
	if strings.Contains(request.Expression, "{") || request.Activation != nil {
		times = 200
	}
	for run := 0; run < times; run++ {
		once := Answer{}
		value, details, err := program.Eval(variables)
		if details != nil {
			once.Actual = details.ActualCost()
		}
		if once.Actual != nil && 10_000 < *once.Actual {
			times = 1
		}
		if err != nil {
			once.Error = selfType.ReplaceAllString(err.Error(), "selfType")
		} else {
			once.Result = selfType.ReplaceAllString(canonical(value), "selfType")
		}
		switch {
		case answer.Error == "" && answer.Result == "":
			answer.Actual, answer.Result, answer.Error = once.Actual, once.Result, once.Error
		case answer.Result != once.Result || answer.Error != once.Error:
			answer.Actual, answer.Result, answer.Error, answer.Varies = nil, "", "", true
			return nil
		case answer.Actual != nil && once.Actual != nil && *answer.Actual != *once.Actual:
			answer.Actual = nil
		}
	}
	return nil
}

// sizes answers how large things are, from a table.
type sizes map[string]uint64

func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if size, ok := s[strings.Join(element.Path(), ".")]; ok && len(element.Path()) != 0 {
		return &checker.SizeEstimate{Max: size}
	}
	return nil
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func structural(request *Request) (*schema.Structural, error) {
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(request.Schema, &external); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&internal)
}

func asRule(request *Request) (*Answer, error) {
	set, err := base(request)
	if err != nil {
		return nil, err
	}
	schema, err := structural(request)
	if err != nil {
		return nil, err
	}
	rule := apiextensionsv1.ValidationRule{Rule: request.Expression, MessageExpression: request.Message}
	if request.OptionalOldSelf {
		rule.OptionalOldSelf = &request.OptionalOldSelf
	}
	schema.XValidations = apiextensionsv1.ValidationRules{rule}
	results, err := rules.Compile(schema, model.SchemaDeclType(schema, false), request.budget(), set, rules.NewExpressionsEnvLoader())
	if err != nil {
		return nil, err
	}
	result := results[0]
	answer := &Answer{}
	if result.Error != nil {
		answer.Refused = selfType.ReplaceAllString(result.Error.Detail, "selfType")
		return answer, nil
	}
	answer.Type, answer.Max = "bool", &result.MaxCost
	variables := map[string]any{}
	for _, name := range []string{rules.ScopedVarName, rules.OldScopedVarName} {
		object, ok := request.Activation[name]
		decoded, err := decode(object)
		if err != nil {
			return nil, err
		}
		var value ref.Val
		if ok {
			value = rules.UnstructuredToVal(decoded, schema)
		}
		if name == rules.OldScopedVarName && request.OptionalOldSelf {
			if ok {
				value = types.OptionalOf(value)
			} else {
				value = types.OptionalNone
			}
		}
		if value != nil {
			variables[name] = value
		}
	}
	if request.Activation == nil {
		return answer, nil
	}
	if result.MessageExpression != nil {
		answer.Message = &Answer{Type: "string", Max: &result.MessageExpressionMaxCost}
		if err := run(request, result.MessageExpression, variables, answer.Message); err != nil {
			return nil, err
		}
	} else if result.MessageExpressionError != nil {
		answer.Message = &Answer{Refused: selfType.ReplaceAllString(result.MessageExpressionError.Detail, "selfType")}
	}
	return answer, run(request, result.Program, variables, answer)
}

func ofObject(request *Request) (*Answer, error) {
	schema, err := structural(request)
	if err != nil {
		return nil, err
	}
	object, err := decode(request.Activation["self"])
	if err != nil {
		return nil, err
	}
	old, err := decode(request.Activation["oldSelf"])
	if err != nil {
		return nil, err
	}
	budget := int64(limits.RuntimeCELCostBudget)
	if request.Budget != 0 {
		budget = int64(request.Budget)
	}
	validator := rules.NewValidator(schema, true, limits.PerCallLimit)
	answer := &Answer{}
	if validator == nil {
		return answer, nil
	}
	failures, remaining := validator.Validate(context.Background(), field.NewPath("root"), schema, object, old, budget)
	for _, failure := range failures {
		answer.Violations = append(answer.Violations, selfType.ReplaceAllString(failure.Error(), "selfType"))
	}
	answer.Remaining = &remaining
	return answer, nil
}

type accessor string

func (a accessor) GetExpression() string  { return string(a) }
func (accessor) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

func inAdmission(request *Request, declarations admission.OptionalVariableDeclarations) (*Answer, error) {
	set, err := base(request)
	if err != nil {
		return nil, err
	}
	answer := &Answer{}
	compiled := admission.NewCompiler(set).CompileCELExpression(accessor(request.Expression), declarations, environment.NewExpressions)
	if compiled.Error != nil {
		answer.Refused = compiled.Error.Detail
		return answer, nil
	}
	answer.Type = compiled.OutputType.String()
	return answer, run(request, compiled.Program, nil, answer)
}

func sorted[V any](names map[string]V) []string {
	var found []string
	for name := range names {
		found = append(found, name)
	}
	sort.Strings(found)
	return found
}
