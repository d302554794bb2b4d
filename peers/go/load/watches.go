package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Watches that are being opened at one time.
const opening = 64

func openWatch(ctx context.Context, cs *kubernetes.Clientset, from string) (io.ReadCloser, error) {
	return cs.CoreV1().RESTClient().Get().Namespace(*ns).Resource("secrets").
		Param("watch", "1").Param("resourceVersion", from).
		SetHeader("Accept", map[string]string{"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf;stream=watch"}[*content]).
		Stream(ctx)
}

// watchfan: W raw watch streams on one namespace, then n updates of one secret;
// event k of each stream is matched with update k.
func watchfan(ctx context.Context, css []*kubernetes.Clientset, ps []proc) {
	cs := css[0]
	r := rand.New(rand.NewSource(1))
	sec := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fan-target"}, Data: mkdata(r)}
	_ = cs.CoreV1().Secrets(*ns).Delete(ctx, sec.Name, metav1.DeleteOptions{})
	cur, err := cs.CoreV1().Secrets(*ns).Create(ctx, sec, metav1.CreateOptions{})
	must(err)
	startRV := cur.ResourceVersion
	sent := make([]atomic.Int64, *n)
	rssIdle := map[string]int{}
	for _, p := range ps {
		rssIdle[p.name] = rssMiB(p.pid)
	}
	var ready, wg sync.WaitGroup
	lats := make([][]time.Duration, *watchers)
	var got, nbytes, fail atomic.Int64
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open0 := time.Now()
	sem := make(chan struct{}, opening)
	for w := 0; w < *watchers; w++ {
		ready.Add(1)
		wg.Add(1)
		go func(w int) {
			defer wg.Done()
			sem <- struct{}{}
			body, err := openWatch(wctx, css[w%len(css)], startRV)
			<-sem
			ready.Done()
			if err != nil {
				fail.Add(1)
				fmt.Fprintln(os.Stderr, "watch:", err)
				return
			}
			defer body.Close()
			br := bufio.NewReaderSize(body, 8192)
			l := make([]time.Duration, 0, *n)
			var hdr [4]byte
			for k := 0; k < *n; k++ {
				if *content == "json" {
					m := 0
					for {
						b, err := br.ReadSlice('\n')
						m += len(b)
						if err == bufio.ErrBufferFull {
							continue
						}
						if err != nil {
							fail.Add(1)
							return
						}
						break
					}
					nbytes.Add(int64(m))
				} else {
					if _, err := io.ReadFull(br, hdr[:]); err != nil {
						fail.Add(1)
						return
					}
					m := int(binary.BigEndian.Uint32(hdr[:]))
					if _, err := br.Discard(m); err != nil {
						fail.Add(1)
						return
					}
					nbytes.Add(int64(m + 4))
				}
				l = append(l, time.Duration(time.Now().UnixNano()-sent[k].Load()))
				got.Add(1)
			}
			lats[w] = l
		}(w)
	}
	ready.Wait()
	openT := time.Since(open0)
	time.Sleep(2 * time.Second)
	rssOpen := map[string]int{}
	before := make([]float64, len(ps))
	for i, p := range ps {
		rssOpen[p.name] = rssMiB(p.pid)
		before[i] = cpuOf(p.pid)
	}
	s0, t0 := selfCPU(), time.Now()
	for k := 0; k < *n; k++ {
		if *rate > 0 {
			if d := time.Until(t0.Add(time.Duration(float64(k) / *rate * 1e9))); d > 0 {
				time.Sleep(d)
			}
		}
		cur.Data["key0"] = []byte(fmt.Sprintf("%0*d", *size / *keys, k))
		sent[k].Store(time.Now().UnixNano())
		cur, err = cs.CoreV1().Secrets(*ns).Update(ctx, cur, metav1.UpdateOptions{})
		must(err)
	}
	updT := time.Since(t0)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(120 * time.Second):
	}
	wall := time.Since(t0)
	cancel()
	<-done
	var all []time.Duration
	for _, l := range lats {
		all = append(all, l...)
	}
	out := report(ps, before, s0, wall, int(got.Load()), all)
	out["watchers"], out["updates"], out["delivered"], out["fail"] = *watchers, *n, got.Load(), fail.Load()
	out["open_s"], out["updates_s"], out["event_bytes"] = openT.Seconds(), updT.Seconds(), nbytes.Load()/max(1, got.Load())
	out["rss_before"], out["rss_open"] = rssIdle, rssOpen
	emit(out)
}

// watchhold: W idle watch streams on one namespace, which are then closed all at once: what the
// processes have resident with them open, and at most while they close.
func watchhold(ctx context.Context, css []*kubernetes.Clientset, ps []proc) {
	list, err := css[0].CoreV1().Secrets(*ns).List(ctx, metav1.ListOptions{Limit: 1})
	must(err)
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var fail atomic.Int64
	sem := make(chan struct{}, opening)
	for w := 0; w < *watchers; w++ {
		wg.Add(1)
		sem <- struct{}{}
		go func(w int) {
			defer wg.Done()
			defer func() { <-sem }()
			if _, err := openWatch(wctx, css[w%len(css)], list.ResourceVersion); err != nil {
				fail.Add(1)
				fmt.Fprintln(os.Stderr, "watch:", err)
			}
		}(w)
	}
	wg.Wait()
	time.Sleep(3 * time.Second)
	out := map[string]any{"op": *op, "content": *content, "conns": *conns, "watchers": *watchers, "fail": fail.Load(), "cut": *cut}
	for _, p := range ps {
		out["rss_open_"+p.name] = statusMiB(p.pid, "VmRSS:")
		// From here on the kernel keeps a new maximum.
		must(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0))
	}
	if *cut {
		openedMu.Lock()
		for _, conn := range opened {
			conn.Close()
		}
		openedMu.Unlock()
	} else {
		cancel()
	}
	time.Sleep(5 * time.Second)
	for _, p := range ps {
		out["rss_highest_"+p.name] = statusMiB(p.pid, "VmHWM:")
		out["rss_closed_"+p.name] = statusMiB(p.pid, "VmRSS:")
	}
	emit(out)
}
