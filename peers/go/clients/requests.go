package main

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// requests counts what went over a connection, by what matters to informers.
type requests struct {
	lock                          sync.Mutex
	streamedLists, lists, watches int
	// Streamed lists whose connection was cut before the answer began: client-go lists and watches from then on.
	cutLists   int
	mediaTypes map[string]int
}

// count makes a configuration count.
func (r *requests) count(config *rest.Config) *rest.Config {
	r.mediaTypes = map[string]int{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{r, next} })
	return config
}

type counting struct {
	requests *requests
	next     http.RoundTripper
}

// RoundTrip counts what was answered with success.
func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil && response.StatusCode != http.StatusOK {
		return response, err
	}
	c.requests.lock.Lock()
	defer c.requests.lock.Unlock()
	query := request.URL.Query()
	streamed := query.Get("sendInitialEvents") == "true"
	if err != nil {
		if streamed {
			c.requests.cutLists++
		}
		return response, err
	}
	switch {
	case streamed:
		c.requests.streamedLists++
	case query.Get("watch") == "true":
		c.requests.watches++
	default:
		c.requests.lists++
	}
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	c.requests.mediaTypes[mediaType]++
	return response, nil
}
