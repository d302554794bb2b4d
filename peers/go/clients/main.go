// clients: what programs that are built on client-go and controller-runtime expect of an API server.
//
//	clients TASK --kubeconfig FILE --reference FILE [--changes N]
//
// Connections by --kubeconfig may break at any time; those by --reference, to the same server, do not. A task ends
// with one line of JSON that tells what it did, or with an error. Whether informers begin with a streamed list is
// client-go's own switch: KUBE_FEATURE_WatchListClient.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// patience bounds how long anything may take until it is as it should be.
const patience = 90 * time.Second

// report is what a task did.
type report map[string]any

// setting is what a task runs with.
type setting struct {
	broken    *rest.Config
	reference *rest.Config
	changes   int
}

var tasks = map[string]func(context.Context, *setting) (report, error){
	"informers": informers,
	"calls":     calls,
	"conflicts": conflicts,
	"leaders":   leaders,
	"manager":   manage,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 || tasks[arguments[0]] == nil {
		return fmt.Errorf("which task?")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "a server, by connections that may break")
	reference := flags.String("reference", "", "the same server, by connections that do not")
	changes := flags.Int("changes", 1000, "how many changes are made")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	// Broken connections are what is wanted: no word about each.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	var err error
	with := setting{changes: *changes}
	if with.broken, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err != nil {
		return err
	}
	if with.reference, err = clientcmd.BuildConfigFromFlags("", *reference); err != nil {
		return err
	}
	done, err := tasks[arguments[0]](context.Background(), &with)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}

// connection is a configuration whose clients share no connection with others, and wait for no one.
func connection(to *rest.Config, contentType string) *rest.Config {
	config := rest.CopyConfig(to)
	config.QPS = -1
	config.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	config.ContentType = contentType
	if contentType == runtime.ContentTypeProtobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	return config
}

// eventually asks again until there is nothing wrong, and fails with what was wrong last.
func eventually(ctx context.Context, what string, wrong func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := wrong()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
