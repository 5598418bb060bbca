// Program up runs a control plane for tests of another module, which cannot import
// package cluster, until its standard input ends:
//
//	go run ./up --programs BIN --dir DIR NODE…
//
// It writes admin.kubeconfig and NODE.kubeconfig into DIR, with which the agent of
// a node is its user, and then prints the URL of the API server. To a line "kill" of
// its input it kills that server, to "serve" it starts it again; both are answered
// with the same line when that is done. Without --dir it only builds the programs.
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

	"podd/testdata/controlplane/cluster"
)

func main() {
	programs := flag.String("programs", "", "the `directory` that has, or gets, the programs")
	dir := flag.String("dir", "", "the `directory` of the control plane's own files")
	flag.Parse()
	if err := up(context.Background(), *programs, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func up(ctx context.Context, programs, dir string, nodes []string) (err error) {
	if programs == "" {
		return errors.New("--programs is required")
	}
	if err := cluster.Build(programs, cluster.ControlPlane...); err != nil || dir == "" {
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
		var err error
		switch lines.Text() {
		case "kill":
			err = c.Kill()
		case "serve":
			err = c.Serve(ctx)
		default:
			err = fmt.Errorf("%q is no command", lines.Text())
		}
		if err != nil {
			return err
		}
		fmt.Println(lines.Text())
	}
	return lines.Err()
}
