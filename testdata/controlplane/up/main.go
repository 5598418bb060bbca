// Program up runs a control plane for tests of another module, which cannot import
// package cluster, until its standard input ends:
//
//	go run ./up --programs BIN --dir DIR NODE…
//
// It writes admin.kubeconfig and NODE.kubeconfig into DIR, with which the agent of
// a node is its user, and then prints the URL of the API server. Each line of its
// input is a command, which is answered with the same line when it is done:
//
//	kill             kills the API server
//	serve            starts it again
//	lose             has it come back without anything that it had
//	control FLAG…    starts the controller manager, with flags more, and the scheduler
//	release          ends them
//	metrics PROGRAM  starts a metrics-server
//
// Without --dir it only builds the programs, kubeadm and the kubelet among them, and
// with --conformance instead Kubernetes' suite and what its images are made of.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podd/testdata/controlplane/cluster"
)

func main() {
	programs := flag.String("programs", "", "the `directory` that has, or gets, the programs")
	dir := flag.String("dir", "", "the `directory` of the control plane's own files")
	conformance := flag.Bool("conformance", false, "build Kubernetes' conformance suite, and nothing else")
	flag.Parse()
	if *conformance {
		if err := cluster.BuildConformance(*programs); err != nil {
			fmt.Fprintln(os.Stderr, "up:", err)
			os.Exit(1)
		}
		return
	}
	if err := up(context.Background(), *programs, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func up(ctx context.Context, programs, dir string, nodes []string) (err error) {
	if programs == "" {
		return errors.New("--programs is required")
	}
	wanted := slices.Concat(cluster.ControlPlane, cluster.Controllers)
	if dir == "" {
		wanted = append(wanted, cluster.Kubeadm, cluster.Kubelet)
	}
	if err := cluster.Build(programs, wanted...); err != nil || dir == "" {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Programs: programs})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.Kubeconfig(filepath.Join(dir, "admin.kubeconfig"), "administrator", "system:masters"); err != nil {
		return err
	}
	for _, node := range nodes {
		user, group := cluster.NodeUser(node)
		if err := c.Kubeconfig(filepath.Join(dir, node+".kubeconfig"), user, group); err != nil {
			return err
		}
	}
	fmt.Println(c.URL)
	return obey(ctx, c, os.Stdin)
}

func obey(ctx context.Context, c *cluster.Cluster, in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := command(ctx, c, strings.Fields(lines.Text())); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		fmt.Println(lines.Text())
	}
	return lines.Err()
}

func command(ctx context.Context, c *cluster.Cluster, words []string) error {
	if len(words) == 0 {
		return errors.New("no command")
	}
	switch name, words := words[0], words[1:]; name {
	case "kill":
		return c.Kill()
	case "serve":
		return c.Serve(ctx)
	case "lose":
		return c.Lose(ctx)
	case "control":
		return c.Control(ctx, words...)
	case "release":
		return c.Release()
	case "metrics":
		return c.Metrics(ctx, strings.Join(words, " "))
	}
	return errors.New("no such command")
}
