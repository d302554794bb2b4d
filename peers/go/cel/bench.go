package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	rules "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	admission "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// bench tells what one compilation or evaluation costs in CPU time, garbage collection included.
// What a server makes once for many expressions, and the views of the objects, is there before.
func bench(request *Request) (*Answer, error) {
	compile, variables, err := prepared(request)
	if err != nil {
		return nil, err
	}
	program, err := compile()
	if err != nil {
		return nil, err
	}
	known, err := cel.NewActivation(variables)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	value, _, err := program.ContextEval(ctx, known)
	if err != nil {
		return nil, err
	}
	once := func() error {
		_, _, err := program.ContextEval(ctx, known)
		return err
	}
	if request.Bench == "compile" {
		once = func() error {
			_, err := compile()
			return err
		}
	}
	took, err := cost(time.Duration(request.Milliseconds)*time.Millisecond, once)
	return &Answer{Result: canonical(value), Nanoseconds: took}, err
}

// prepared gives what compiles the expression, and its variables.
func prepared(request *Request) (func() (cel.Program, error), map[string]any, error) {
	set, err := base(request)
	if err != nil {
		return nil, nil, err
	}
	variables := map[string]any{}
	for name, value := range request.Activation {
		if variables[name], err = decode(value); err != nil {
			return nil, nil, err
		}
	}
	switch request.Environment {
	case "rule":
		schema, err := structural(request)
		if err != nil {
			return nil, nil, err
		}
		schema.XValidations = apiextensionsv1.ValidationRules{{Rule: request.Expression}}
		declared := model.SchemaDeclType(schema, false)
		for name, value := range variables {
			var view ref.Val = rules.UnstructuredToVal(value, schema)
			variables[name] = view
		}
		return func() (cel.Program, error) {
			results, err := rules.Compile(schema, declared, request.budget(), set, rules.NewExpressionsEnvLoader())
			if err != nil {
				return nil, err
			}
			if results[0].Error != nil {
				return nil, results[0].Error
			}
			return results[0].Program, nil
		}, variables, nil
	case "condition", "policy":
		compiler := admission.NewCompiler(set)
		declarations := admission.OptionalVariableDeclarations{HasParams: request.Environment == "policy", HasAuthorizer: true}
		return func() (cel.Program, error) {
			compiled := compiler.CompileCELExpression(accessor(request.Expression), declarations, environment.NewExpressions)
			if compiled.Error != nil {
				return nil, compiled.Error
			}
			return compiled.Program, nil
		}, variables, nil
	}
	return nil, nil, fmt.Errorf("no benchmark in the environment %q", request.Environment)
}

// cost runs a call more and more often, until that takes long enough, and gives nanoseconds of one call.
// One thread does everything, garbage collection included.
func cost(enough time.Duration, once func() error) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for count := 1; ; count *= 2 {
		before, err := processTime()
		if err != nil {
			return 0, err
		}
		for range count {
			if err := once(); err != nil {
				return 0, err
			}
		}
		after, err := processTime()
		if err != nil {
			return 0, err
		}
		if took := after - before; took >= enough {
			return float64(took.Nanoseconds()) / float64(count), nil
		}
	}
}

func processTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("the time of the process is not known: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
