// Command measure compares the resource usage that a kubelet and podd report for the same pods. Both
// run at the same time, each with a separate containerd. The command compares all constant numbers of
// /stats/summary, the processor time of the same period, and the set of fields and metrics. It
// compares the values in several rounds, and fails if a value differs by more than a twentieth of the
// kubelet's value in every round.
//
// The kubelet is built in testdata/controlplane; see its package doc. With --record the
// kubelet's fields and metrics are written to testdata/kubelet/stats.txt. The end-to-end test
// TestEndpoints_SameFieldsAsKubelet compares podd with this file.
//
//	go build -o /tmp/podd ./cmd/podd
//	go run ./cmd/podd/e2e/measure --kubelet /tmp/bin/kubelet --podd /tmp/podd [--record]
//
// The command needs root and takes some minutes. It restores the settings of the host that a
// kubelet changes.
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

// recordFile is the file with the kubelet's fields and metrics.
const recordFile = "testdata/kubelet/stats.txt"

// A kubelet's cAdvisor measures the usage of disks once a minute, so settleTime is longer than a
// minute. It measures all other usage every ten to fifteen seconds, so rateInterval is longer than
// that.
const (
	settleTime   = 75 * time.Second
	rateInterval = 30 * time.Second
	maxRounds    = 6
)

func main() {
	program := flag.String("kubelet", "", "path of the kubelet")
	podd := flag.String("podd", "", "path of the podd to compare with the kubelet")
	record := flag.Bool("record", false, "write the kubelet's fields and metrics to "+recordFile)
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
	defer kubelet.SaveHost(dir)()
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
		if err := n.writeManifests(shape.Pods()); err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	k, p := nodes[0], nodes[1]
	defer p.stop()
	defer k.stop()
	unlink, err := kubelet.LinkContainerd(k.stack.Socket())
	if err != nil {
		return err
	}
	defer unlink()
	if err := k.startKubelet(program); err != nil {
		return err
	}
	if err := p.startPodd(podd); err != nil {
		return err
	}
	time.Sleep(settleTime)
	if record {
		if err := k.recordShape(recordFile); err != nil {
			return err
		}
	}
	return compareNodes(k, p)
}

// compareNodes compares both nodes in several rounds, and prints the differences that occur in every
// round. One round is not enough, because the nodes do not measure at the same time.
func compareNodes(k, p *node) error {
	if err := printShapeDifferences(k, p); err != nil {
		return err
	}
	var differences map[string]string
	for range maxRounds {
		kubelet, kerr := k.fetchCounters()
		podd, perr := p.fetchCounters()
		time.Sleep(rateInterval)
		kubelet2, kerr2 := k.fetchCounters()
		podd2, perr2 := p.fetchCounters()
		want, werr := k.fetchNumbers()
		got, gerr := p.fetchNumbers()
		for _, err := range []error{kerr, perr, kerr2, perr2, werr, gerr} {
			if err != nil {
				return err
			}
		}
		kr, pr := computeRates(kubelet, kubelet2), computeRates(podd, podd2)
		roundDifferences := compareNumbers(want, got)
		maps.Copy(roundDifferences, compareRates(kr, pr))
		previousDifferences := differences
		differences = map[string]string{}
		for at, text := range roundDifferences {
			if _, hasDiffered := previousDifferences[at]; hasDiffered || previousDifferences == nil {
				differences[at] = text
			}
		}
		fmt.Printf("compared %d numbers and %d rates of podd and the kubelet: %d have differed in every round\n\t%s\n", len(want), len(kr), len(differences), strings.Join(slices.Sorted(maps.Values(differences)), "\n\t"))
		if len(differences) == 0 {
			return nil
		}
	}
	return fmt.Errorf("comparing podd with the kubelet: %d numbers differ by more than 5 percent", len(differences))
}

// printShapeDifferences prints the fields and metrics that only one of the nodes has, without the
// expected differences.
func printShapeDifferences(k, p *node) error {
	kubelet, err := k.fetchShape()
	if err != nil {
		return err
	}
	podd, err := p.fetchShape()
	if err != nil {
		return err
	}
	for _, endpoint := range shape.Endpoints {
		for _, d := range shape.Unexpected(endpoint, shape.Diff(kubelet[endpoint], podd[endpoint])) {
			fmt.Println(endpoint, d)
		}
	}
	return nil
}

// fetchShape returns the fields and metrics of every endpoint of the node.
func (n *node) fetchShape() (map[string][]string, error) { return shape.FetchAll(n.get, "-"+n.name) }

func (n *node) recordShape(path string) error {
	shapes, err := n.fetchShape()
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(shape.Format(shapes)), 0o644)
}
