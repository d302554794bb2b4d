package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// bench tells what one transformation of a value costs in CPU time, garbage collection included.
func bench(asked request) (answer, error) {
	return configured(asked.Config, func(ctx context.Context, transformers value.ResourceTransformers) (answer, error) {
		transformer := transformers.TransformerForResource(schema.ParseGroupResource("secrets"))
		dataContext := value.DefaultContext(asked.Context)
		stored, err := transformer.TransformToStorage(ctx, asked.Value, dataContext)
		if err != nil {
			return answer{}, err
		}
		once := func() error {
			_, err := transformer.TransformToStorage(ctx, asked.Value, dataContext)
			return err
		}
		if asked.Direction == "from" {
			once = func() error {
				_, _, err := transformer.TransformFromStorage(ctx, stored, dataContext)
				return err
			}
		}
		took, err := cost(time.Duration(asked.Milliseconds)*time.Millisecond, once)
		return answer{Value: stored, Nanoseconds: took}, err
	})
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
