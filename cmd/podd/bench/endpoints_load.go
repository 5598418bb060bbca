package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// senderCount is the number of concurrent requests. It is less than the connection limit of each
// endpoint.
const senderCount = 48

// measureOverload sends more requests than podd can handle, while a pod is started and stopped
// repeatedly.
func (b *bench) measureOverload(ctx context.Context, e *endpoints) error {
	memoryBefore, err := b.measureIdleMemory(ctx)
	if err != nil {
		return err
	}
	for _, to := range []struct {
		name, url string
		transport *http.Transport
	}{
		{"the kubelet API", "https://" + e.kubeletAddress + "/pods", &http.Transport{TLSClientConfig: e.tls}},
		{"the socket", "http://podd/pods", b.daemon.socketTransport()},
		{"the read-only port", "http://" + e.readOnlyAddress + "/pods", &http.Transport{}},
	} {
		to.transport.MaxIdleConnsPerHost = senderCount
		var r results
		cpuSeconds := measureCPU(b.daemon.cmd.Process.Pid)
		err := b.withPodChanges(ctx, func() error {
			r = sendAtRate(ctx, &http.Client{Transport: to.transport}, to.url, b.Load)
			return r.err
		})
		to.transport.CloseIdleConnections()
		if err != nil {
			return fmt.Errorf("sending requests to %s: %w", to.url, err)
		}
		secondsPerRequest := cpuSeconds() / float64(max(r.sent, 1))
		name := fmt.Sprintf("/pods on %s, %d requests/s offered", to.name, offeredRate)
		b.table.add(row{name: name + ": sent", unit: perSecond, podd: samples{r.rate(r.sent)}})
		b.table.add(row{name: name + ": responses with status 200", unit: perSecond, podd: samples{r.rate(len(r.durations))}})
		b.table.add(row{name: name + ": responses with status 429", unit: perSecond, podd: samples{r.rate(r.tooManyRequests)}})
		b.table.add(row{name: name + ": CPU time of podd per request", unit: milliseconds, podd: samples{secondsPerRequest}})
		b.table.add(row{name: name + ": p50 latency of responses with status 200", unit: seconds, podd: samples{r.quantile(0.5)}})
		b.table.add(row{name: name + ": p99 latency of responses with status 200", unit: seconds, podd: samples{r.quantile(0.99)}, goal: goal{offset: 0.1}})
	}
	memoryAfter, err := b.measureIdleMemory(ctx)
	if err != nil {
		return err
	}
	b.table.add(row{name: "RSS (bare: before the load; podd: after it)", unit: megabytes, bare: samples{memoryBefore}, podd: samples{memoryAfter}, goal: goal{factor: 1, offset: 8e6}})
	return nil
}

var (
	perSecond    = unit{1, "%.0f /s"}
	milliseconds = unit{1e3, "%.2f ms"}
)

// withPodChanges calls f while a pod is started and stopped repeatedly.
func (b *bench) withPodChanges(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			pods := b.newPods(1)
			// Do not cancel the start of a pod, because after an error its manifest would not be
			// removed.
			uncancelled := context.WithoutCancel(ctx)
			if _, _, err := b.startPods(uncancelled, pods); err != nil {
				result <- err
				return
			}
			if err := b.daemon.removeManifests(pods); err != nil {
				result <- err
				return
			}
			// The runtime uses most of the CPU time of a start. Without the pause, the runtime
			// would always be busy.
			sleep(ctx, burstRoundPause)
		}
		result <- nil
	}()
	err := f()
	cancel()
	return errors.Join(err, <-result)
}

// results contains the results of the requests of one sender, or of all senders.
type results struct {
	err                   error // the first error
	sent, tooManyRequests int
	durations             []time.Duration // durations of responses with status 200, sorted
	period                time.Duration
}

func (r *results) rate(n int) float64 { return float64(n) / r.period.Seconds() }

func (r *results) quantile(q float64) float64 {
	if len(r.durations) == 0 {
		return 0
	}
	return r.durations[int(q*float64(len(r.durations)-1))].Seconds()
}

// sendAtRate sends requests at offeredRate, and stops after the given duration. It does not wait for
// the response to a request before it sends the next request. It drops a request if no sender is free.
func sendAtRate(ctx context.Context, client *http.Client, url string, duration time.Duration) results {
	tokens := make(chan struct{}, offeredRate/20)
	parts := make([]results, senderCount)
	var senders sync.WaitGroup
	for i := range parts {
		senders.Go(func() {
			for range tokens {
				parts[i].send(ctx, client, url)
			}
		})
	}
	const tick = 5 * time.Millisecond
	startTime, queuedCount := time.Now(), 0
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for time.Since(startTime) < duration && ctx.Err() == nil {
		<-ticker.C
		for want := int(time.Since(startTime).Seconds() * offeredRate); queuedCount < want; queuedCount++ {
			select {
			case tokens <- struct{}{}:
			default:
			}
		}
	}
	close(tokens)
	total := results{period: time.Since(startTime)}
	senders.Wait()
	for _, p := range parts {
		total.sent, total.tooManyRequests, total.durations = total.sent+p.sent, total.tooManyRequests+p.tooManyRequests, append(total.durations, p.durations...)
		if total.err == nil {
			total.err = p.err
		}
	}
	slices.Sort(total.durations)
	return total
}

func (r *results) send(ctx context.Context, client *http.Client, url string) {
	startTime := time.Now()
	_, status, err := getAndDiscard(ctx, client, url)
	r.sent++
	switch {
	case r.err != nil:
	case err != nil:
		r.err = err
	case status == http.StatusOK:
		r.durations = append(r.durations, time.Since(startTime))
	case status == http.StatusTooManyRequests:
		r.tooManyRequests++
	default:
		r.err = fmt.Errorf("got status %d, want 200 or 429", status)
	}
}

// getAndDiscard sends a GET request and reads the response completely.
func getAndDiscard(ctx context.Context, client *http.Client, url string) (size int64, status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	reply, err := client.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer reply.Body.Close()
	size, err = io.Copy(io.Discard, reply.Body)
	return size, reply.StatusCode, err
}
