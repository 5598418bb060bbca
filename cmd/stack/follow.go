package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// follow prints a line for every pod that runs, ends or has a problem.
func (p place) follow(ctx context.Context) error {
	t := teller{place: p, told: map[server.Key]string{}, seen: map[server.Key]time.Time{}}
	return p.whenUp(ctx, func() error { return p.watch(ctx, t.tell) })
}

// teller remembers what it told.
type teller struct {
	place
	told   map[server.Key]string
	seen   map[server.Key]time.Time // when each pod was first seen
	hinted bool
}

func (t *teller) tell(c *server.Change) {
	for _, pod := range c.Pods {
		key := pod.Key()
		if _, known := t.seen[key]; !known {
			t.seen[key] = time.Now()
		}
		if text := t.describe(pod); text != "" && text != t.told[key] {
			t.told[key] = text
			fmt.Println(text)
		}
	}
	for _, key := range c.Gone {
		delete(t.told, key)
		delete(t.seen, key)
		fmt.Printf("- %s  removed\n", strings.TrimSuffix(key.String(), "-"+c.Node))
	}
	if !t.hinted && len(t.told) > 0 && len(t.told) == len(t.seen) {
		t.hinted = true
		t.hint()
	}
}

func (p place) hint() {
	fmt.Printf("  pods    drop files into %-24s see     bin/podd ps · bin/podd logs -f web\n", show(p.manifests()))
	fmt.Printf("  list    %-32s end     ^C leaves pods running; make stop removes all\n", "http://127.0.0.1:10255/pods")
}

// describe is "" while there is nothing to tell yet.
func (t *teller) describe(pod *server.PodView) string {
	name := pod.Pod.Namespace + "/" + strings.TrimSuffix(pod.Pod.Name, "-"+pod.Pod.Spec.NodeName)
	switch {
	case pod.Pod.DeletionTimestamp != nil:
		return ""
	case pod.Problem || anyProblem(pod):
		return fmt.Sprintf("! %-14s podd why %s", name, strings.TrimPrefix(name, "default/"))
	case pod.Ready && t.told[pod.Key()] == "":
		took := time.Since(t.seen[pod.Key()])
		return fmt.Sprintf("+ %-14s running  %.2fs  %s%s", name, took.Seconds(), show(pod.Path), address(pod.Pod))
	case pod.Ready && strings.HasPrefix(t.told[pod.Key()], "!"):
		return fmt.Sprintf("+ %-14s running", name)
	}
	return ""
}

func anyProblem(pod *server.PodView) bool {
	for _, s := range pod.Steps {
		if s.Problem {
			return true
		}
	}
	return false
}

// address is where a pod that names a port answers.
func address(pod *v1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if len(c.Ports) > 0 && pod.Status.PodIP != "" {
			return fmt.Sprintf("  http://%s:%d", pod.Status.PodIP, c.Ports[0].ContainerPort)
		}
	}
	return ""
}

// whenUp calls f once podd's socket answers.
func (p place) whenUp(ctx context.Context, f func() error) error {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		c, err := net.Dial("unix", p.socket())
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

func (p place) socket() string { return filepath.Join(p.socketDir(), server.SocketName) }

// watch calls tell for every change until ctx ends.
func (p place) watch(ctx context.Context, tell func(*server.Change)) error {
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.socket())
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
			return nil // podd has ended, or we shall
		}
		tell(&c)
	}
}
