package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// follow prints a line for every pod that starts to run, is replaced, is removed or has a problem.
// It also prints a line for every problem of the manifests and the runtime, and a line when all of
// these problems are solved.
func (w workDir) follow(ctx context.Context) error {
	f := follower{workDir: w, pods: map[server.Key]*printedLine{}}
	return w.whenServing(ctx, func() error { return w.watch(ctx, f.print) })
}

// A follower prints changes and stores what it has printed.
type follower struct {
	workDir
	pods            map[server.Key]*printedLine
	problems        []string
	hasPrintedHints bool
}

// printedLine is the last printed line of a pod.
type printedLine struct {
	text       string
	since      time.Time // when the current version of the pod was first observed
	uid        types.UID
	wasRunning bool // whether a version of the pod was printed as running
}

func (f *follower) print(c *server.Change) {
	for _, pod := range c.Pods {
		if text := f.nextLine(pod); text != "" {
			fmt.Println(text)
		}
	}
	for _, key := range c.Removed {
		delete(f.pods, key)
		fmt.Printf("- %-14s removed\n", withoutNode(key, c.Node))
	}
	var current []string
	for _, p := range c.Problems {
		p.Path = relativePath(p.Path)
		current = append(current, p.String())
	}
	for _, text := range formatProblems(f.problems, current) {
		fmt.Println(text)
	}
	f.problems = current
	if !f.hasPrintedHints && len(f.pods) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(f.pods)), func(p *printedLine) bool { return p.text == "" }) {
		f.hasPrintedHints = true
		f.printHints()
	}
}

// withoutNode returns the name of a pod without the node name at its end.
func withoutNode(pod server.Key, node string) string {
	return strings.TrimSuffix(pod.String(), "-"+node)
}

// formatProblems returns a line for each problem that is in current and not in previous. If current
// is empty and previous is not, formatProblems returns a line which states that all problems are
// solved.
func formatProblems(previous, current []string) (lines []string) {
	for _, text := range current {
		if !slices.Contains(previous, text) {
			lines = append(lines, "! "+text)
		}
	}
	if len(previous) > 0 && len(current) == 0 {
		lines = append(lines, "+ all problems solved")
	}
	return lines
}

func (w workDir) printHints() {
	fmt.Printf("  pods    drop files into %-24s see     bin/podd ps · bin/podd logs -f web\n", relativePath(w.manifestDir()))
	fmt.Printf("  page    %-32s end     ^C leaves pods running; make stop removes all\n", "http://127.0.0.1:10255/")
}

// nextLine returns the line to print for a pod, or "" if the line is unchanged.
func (f *follower) nextLine(pod *server.PodView) string {
	p := f.pods[pod.Key()]
	if p == nil || p.uid != pod.Pod.UID {
		next := &printedLine{since: time.Now(), uid: pod.Pod.UID, wasRunning: p != nil && p.wasRunning}
		f.pods[pod.Key()], p = next, next
	}
	text := p.formatLine(pod)
	if text == "" || text == p.text {
		return ""
	}
	p.text = text
	return text
}

// formatLine returns the line for the state of a pod, or "" if the state is not printed.
func (p *printedLine) formatLine(pod *server.PodView) string {
	name := pod.Pod.Namespace + "/" + strings.TrimSuffix(pod.Pod.Name, "-"+pod.Pod.Spec.NodeName)
	switch why := podProblem(pod); {
	case pod.Pod.DeletionTimestamp != nil:
		return ""
	case why != "":
		return fmt.Sprintf("! %-14s %s; run \"bin/podd why %s\" for the reason", name, why, strings.TrimPrefix(name, "default/"))
	case !pod.Ready:
		return ""
	case p.text == "" && p.wasRunning:
		return fmt.Sprintf("+ %-14s replaced %.2fs  %s", name, time.Since(p.since).Seconds(), relativePath(pod.Path))
	case p.text == "":
		p.wasRunning = true
		return fmt.Sprintf("+ %-14s running  %.2fs  %s%s", name, time.Since(p.since).Seconds(), relativePath(pod.Path), portURL(pod.Pod))
	case strings.HasPrefix(p.text, "!"):
		p.wasRunning = true
		return fmt.Sprintf("+ %-14s running", name)
	}
	return ""
}

// podProblem returns the problem of a pod that the user must solve, or "".
func podProblem(pod *server.PodView) string {
	if pod.NeedsUser {
		return pod.Why
	}
	for _, s := range pod.Decisions {
		if s.NeedsUser {
			return s.Container + ": " + s.Why
		}
	}
	return ""
}

// portURL returns the URL of the first port of a pod, or "" if the pod has no port or no
// address.
func portURL(pod *v1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if len(c.Ports) > 0 && pod.Status.PodIP != "" {
			return fmt.Sprintf("  http://%s:%d", pod.Status.PodIP, c.Ports[0].ContainerPort)
		}
	}
	return ""
}

// whenServing calls f as soon as podd's socket accepts connections. If ctx is done before that,
// whenServing returns nil and does not call f.
func (w workDir) whenServing(ctx context.Context, f func() error) error {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		c, err := net.Dial("unix", w.socketPath())
		if err == nil {
			c.Close()
			return f()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
	}
}

// stopPods stops all pods of the running podd, and prints each pod that has stopped.
func (w workDir) stopPods(ctx context.Context) error {
	var v server.View
	err := w.request(ctx, http.MethodGet, "/v1/state", func(d *json.Decoder) (done bool, err error) { return true, d.Decode(&v) })
	if err != nil {
		return err
	}
	startTime := time.Now()
	return w.request(ctx, http.MethodPost, "/v1/down", func(d *json.Decoder) (done bool, err error) {
		var p server.StopProgress
		if err := d.Decode(&p); err != nil {
			return true, err
		}
		for _, key := range p.Stopped {
			fmt.Printf("- %-14s stopped  %.2fs\n", withoutNode(key, v.Node), time.Since(startTime).Seconds())
		}
		for _, problem := range p.Problems {
			fmt.Printf("! %-14s does not stop: %s\n", withoutNode(problem.Pod, v.Node), problem.Reason)
		}
		if p.Error != "" {
			return true, errors.New(p.Error)
		}
		return p.Done, nil
	})
}

func (w workDir) socketPath() string { return filepath.Join(w.socketDir(), server.SocketName) }

// watch calls handle for every change until ctx is done.
func (w workDir) watch(ctx context.Context, handle func(*server.Change)) error {
	return w.request(ctx, http.MethodGet, "/v1/state?watch=1", func(d *json.Decoder) (done bool, err error) {
		var c server.Change
		if err := d.Decode(&c); err != nil {
			return true, nil // podd or this program is stopping
		}
		handle(&c)
		return false, nil
	})
}

// request sends a request to podd, and calls read for the stream of the response until read returns
// done.
func (w workDir) request(ctx context.Context, method, path string, read func(*json.Decoder) (done bool, err error)) error {
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.socketPath())
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://podd"+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("requesting %s from podd: %w", path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("requesting %s from podd: status %s", path, resp.Status)
	}
	for d := json.NewDecoder(resp.Body); ; {
		if done, err := read(d); done || err != nil {
			return err
		}
	}
}
