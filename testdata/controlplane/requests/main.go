// Command requests records the requests of a real kubelet of Kubernetes to its container
// runtime. It has three parts. It runs the parts that the arguments name, or all parts:
//
//	static  many pods: combinations of fields, and the manifests of podd's own
//	        tests, in the manifest directory of a standalone kubelet
//	api     pods that need an API server, for the objects that they use
//	calls   requests for running pods: hooks, probes, grace periods, resizes, exits
//
// The runtime is in memory, so that nothing is started. The kubelet needs root nevertheless.
// See package controlplane for how to run the program.
//
// The first two recordings are gzipped lines of JSON: first the node with the existing objects,
// then one line per pod with the configs of its sandbox and containers, its image pulls, and
// the files in its volumes. Values that differ between runs are replaced: ROOT is the kubelet's
// root directory, LOGS the directory of logs, UID the pod's UID, TERMINATION the name of a
// termination message file, and TIME the directory with the files of a volume. The first host ID of
// every user namespace is replaced by 65536. See calls.go for the recordings of part calls.
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

// idleTimeout is the time without a new request after which the pods that the kubelet has not
// created are regarded as rejected.
const idleTimeout = 20 * time.Second

func main() {
	programs := flag.String("programs", "", "`directory` of the programs of the control plane, which are built there if necessary (default: a temporary directory)")
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
		do, ok := map[string]func(context.Context, string, string) error{"static": recordStatic, "api": recordAPI, "calls": recordCalls}[part]
		if !ok {
			return fmt.Errorf("unknown part %q", part)
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
