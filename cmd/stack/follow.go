package main

import (
	"context"
	"encoding/json"
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
		fmt.Printf("- %s  removed\n", strings.TrimSuffix(key.String(), "-"+c.Node))
	}
	var current []string
	for i := range c.Problems {
		current = append(current, c.Problems[i].String())
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

// formatProblems returns a line for each new problem. previous and current contain the previous and
// the current problems. If the last problem is solved, formatProblems returns a line which states
// that no problem is left.
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

func (w workDir) socketPath() string { return filepath.Join(w.socketDir(), server.SocketName) }

// watch calls handle for every change until ctx is done.
func (w workDir) watch(ctx context.Context, handle func(*server.Change)) error {
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.socketPath())
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podd/v1/state?watch=1", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("watching podd: %w", err)
	}
	defer resp.Body.Close()
	for changes := json.NewDecoder(resp.Body); ; {
		var c server.Change
		if err := changes.Decode(&c); err != nil {
			return nil // podd or this program is stopping
		}
		handle(&c)
	}
}
