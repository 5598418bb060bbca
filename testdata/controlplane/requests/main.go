// Program requests records what a real kubelet of Kubernetes asks of its
// container runtime, in three parts, all of them or those that are named:
//
//	static  many pods: combinations of fields, and the manifests of podd's own
//	        tests, as manifests in a directory of a kubelet on its own
//	api     pods that need an API server, for what they read and mount
//	calls   what is asked of running pods: hooks, probes, graces, sizes, ends
//
// The runtime is in memory, so that nothing is started; a kubelet needs root all
// the same. See package controlplane for how to run it.
//
// The first two are gzipped lines of JSON: the node with the objects that there
// are, then a pod each, with the configs of its sandbox and containers, what was
// pulled for it, and the files in its volumes. What differs from run to run is
// replaced: ROOT is the kubelet's directory, LOGS that of logs, UID the pod's,
// TERMINATION the name of a file for a termination message, and TIME that of the
// directory that a volume's files are in; of the node's ids every user namespace
// has those from 65536. For the last see calls.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"podd/testdata/controlplane/cluster"
)

// The recordings.
const (
	outputStatic = "../render/kubelet.jsonl.gz"
	outputAPI    = "../render/kubelet-api.jsonl.gz"
)

// patience is how long the kubelet may do nothing before the rest of the pods
// counts as refused by it.
const patience = 20 * time.Second

func main() {
	programs := flag.String("programs", "", "the `directory` that has, or gets, the programs of the control plane; \"\" for none that stays")
	flag.Parse()
	parts := flag.Args()
	if len(parts) == 0 {
		parts = []string{"static", "api", "calls"}
	}
	if err := record(context.Background(), *programs, parts); err != nil {
		fmt.Fprintln(os.Stderr, "recording requests:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, programs string, parts []string) error {
	if programs == "" {
		dir, err := os.MkdirTemp("", "programs")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		programs = dir
	}
	if err := cluster.Build(programs, append(cluster.ControlPlane, cluster.Kubelet)...); err != nil {
		return err
	}
	for _, part := range parts {
		do, known := map[string]func(context.Context, string, string) error{"static": recordStatic, "api": recordAPI, "calls": recordCalls}[part]
		if !known {
			return fmt.Errorf("there is no part %q", part)
		}
		dir, err := os.MkdirTemp("", "requests")
		if err != nil {
			return err
		}
		err = do(ctx, programs, dir)
		_ = os.RemoveAll(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}
