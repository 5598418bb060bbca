// Program measure runs the same pods under a kubelet and under podd, side by side
// on this machine and each on a containerd of its own, and compares what both tell
// of what they use: every number of /stats/summary that stands still, the processor
// time over the same while, and which fields and metrics there are. It fails where
// they differ by more than a twentieth for minutes.
//
// The kubelet is built in testdata/controlplane, whose package doc says how. With
// --record the shapes of its answers are written to testdata/kubelet/stats.txt, with
// which the end-to-end test TestShape compares podd's:
//
//	go build -o /tmp/podd ./cmd/podd
//	go run ./cmd/podd/e2e/measure --kubelet /tmp/bin/kubelet --podd /tmp/podd [--record]
//
// It needs root, and takes some minutes. What a kubelet changes of the machine is
// put back.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/e2e/kubelet"
	"podd/cmd/podd/e2e/shape"
	"podd/runtime/runtimetest/stack"
)

// recording is where the kubelet's shapes are kept.
const recording = "testdata/kubelet/stats.txt"

// Times: a kubelet's cAdvisor looks every ten to fifteen seconds, and at disks once
// a minute.
const (
	settle   = 75 * time.Second
	interval = 30 * time.Second
	rounds   = 6
)

func main() {
	program := flag.String("kubelet", "", "the kubelet's program")
	podd := flag.String("podd", "", "podd's")
	record := flag.Bool("record", false, "write the kubelet's shapes to "+recording)
	flag.Parse()
	if err := measure(context.Background(), *program, *podd, *record); err != nil {
		fmt.Fprintln(os.Stderr, "measuring:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, program, podd string, record bool) (err error) {
	dir, err := os.MkdirTemp("", "measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer kubelet.Remember(dir)()
	var nodes []*node
	for _, name := range []string{"kubelet", "podd"} {
		s, err := stack.Start(ctx, stack.Options{Dir: filepath.Join(dir, name+"-stack")})
		if err != nil {
			return err
		}
		defer func() { _ = s.Destroy(ctx) }()
		n, err := newNode(name, dir, s)
		if err != nil {
			return err
		}
		if err := n.want(shape.Pods()); err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	k, p := nodes[0], nodes[1]
	defer p.end()
	defer k.end()
	if err := k.startKubelet(program); err != nil {
		return err
	}
	if err := p.startPodd(podd); err != nil {
		return err
	}
	time.Sleep(settle)
	if record {
		if err := k.record(recording); err != nil {
			return err
		}
	}
	return compare(k, p)
}

// compare tells what differs in every round so far: they do not look at the same
// moment, and the machine moves.
func compare(k, p *node) error {
	if err := shapes(k, p); err != nil {
		return err
	}
	var left map[string]string
	for range rounds {
		kubelet, kerr := k.counters()
		podd, perr := p.counters()
		time.Sleep(interval)
		kubelet2, kerr2 := k.counters()
		podd2, perr2 := p.counters()
		want, werr := k.numbers()
		got, gerr := p.numbers()
		for _, err := range []error{kerr, perr, kerr2, perr2, werr, gerr} {
			if err != nil {
				return err
			}
		}
		kr, pr := rates(kubelet, kubelet2), rates(podd, podd2)
		now := differences(want, got)
		maps.Copy(now, rateDifferences(kr, pr))
		before := left
		left = map[string]string{}
		for at, text := range now {
			if _, still := before[at]; still || before == nil {
				left[at] = text
			}
		}
		fmt.Printf("%d numbers and %d rates, %d differ\n\t%s\n", len(want), len(kr), len(left), strings.Join(slices.Sorted(maps.Values(left)), "\n\t"))
		if len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d numbers differ by more than a twentieth", len(left))
}

// shapes prints what only one of them has.
func shapes(k, p *node) error {
	kubelet, err := k.shape()
	if err != nil {
		return err
	}
	podd, err := p.shape()
	if err != nil {
		return err
	}
	for _, face := range shape.Faces {
		for _, d := range shape.Unexpected(face, shape.Diff(kubelet[face], podd[face])) {
			fmt.Println(face, d)
		}
	}
	return nil
}

// shape is that of every face.
func (n *node) shape() (map[string][]string, error) { return shape.All(n.get, "-"+n.name) }

func (n *node) record(path string) error {
	all, err := n.shape()
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(shape.Text(all)), 0o644)
}
