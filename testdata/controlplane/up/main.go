// Command up runs a control plane until its standard input is closed. It is for the tests of other
// modules, which cannot import package cluster:
//
//	go run ./up --programs BIN --dir DIR NODE…
//
// It writes admin.kubeconfig and NODE.kubeconfig, for the agents of nodes, into DIR, and then
// prints the URL of the API server. Each line of its input is a command. When the command has
// been executed, up prints the same line:
//
//	kill             kill the API server
//	serve            start the API server again
//	lose             restart the API server without its data
//	control FLAG…    start the controller manager, with additional flags, and the scheduler
//	release          stop the controller manager and the scheduler
//	metrics PROGRAM  start a metrics-server
//
// Without --dir it only builds the programs, including kubeadm and the kubelet. With
// --conformance it only builds the conformance suite and the contents of its images. With
// --node-suite it only builds the tests of a node agent, and with --oldest only the control plane of
// the module oldest.
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
	programs := flag.String("programs", "", "`directory` of the programs, which are built there if necessary")
	dir := flag.String("dir", "", "`directory` of the control plane's files")
	conformance := flag.Bool("conformance", false, "only build the conformance suite")
	nodeSuite := flag.Bool("node-suite", false, "only build the tests of a node agent")
	gates := flag.String("feature-gates", "", "feature `gates` of the API server, such as A=true,B=false")
	oldest := flag.Bool("oldest", false, "only build the oldest control plane")
	flag.Parse()
	var err error
	switch {
	case *conformance:
		err = cluster.BuildConformance(*programs)
	case *nodeSuite:
		err = cluster.BuildNodeSuite(*programs)
	case *oldest:
		err = cluster.BuildOldest(*programs)
	default:
		err = up(context.Background(), cluster.Options{Dir: *dir, Programs: *programs, FeatureGates: *gates}, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func up(ctx context.Context, o cluster.Options, nodes []string) (err error) {
	programs, dir := o.Programs, o.Dir
	if programs == "" {
		return errors.New("--programs is required")
	}
	names := slices.Concat(cluster.ControlPlane, cluster.Controllers)
	if dir == "" {
		names = append(names, cluster.Kubeadm, cluster.Kubelet)
	}
	if err := cluster.Build(programs, names...); err != nil || dir == "" {
		return err
	}
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.WriteKubeconfig(filepath.Join(dir, "admin.kubeconfig"), "administrator", "system:masters"); err != nil {
		return err
	}
	for _, node := range nodes {
		user, group := cluster.NodeUser(node)
		if err := c.WriteKubeconfig(filepath.Join(dir, node+".kubeconfig"), user, group); err != nil {
			return err
		}
	}
	fmt.Println(c.URL)
	return serve(ctx, c, os.Stdin)
}

// serve executes the commands in the input.
func serve(ctx context.Context, c *cluster.Cluster, in io.Reader) error {
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
		return c.LoseData(ctx)
	case "control":
		return c.StartControllers(ctx, words...)
	case "release":
		return c.StopControllers()
	case "metrics":
		return c.StartMetricsServer(ctx, strings.Join(words, " "))
	}
	return errors.New("no such command")
}
