package tools

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
)

// NodeSuite is the suite of Kubernetes that tests a node agent, built from testdata/controlplane.
type NodeSuite struct {
	Conformance  // for Ginkgo and the images
	Program      string
	DevicePlugin string // path of the program in the image sample-device-plugin
}

// nodeSuiteRecipe is part of the hash. Change it when the build of the suite changes.
const nodeSuiteRecipe = "2"

// EnsureNodeSuite returns the suite and its images. If they do not exist, EnsureNodeSuite builds
// them, which takes many minutes.
func EnsureNodeSuite(ctx context.Context, log *slog.Logger) (NodeSuite, error) {
	if file := os.Getenv(NodeSuiteFileEnv); file != "" {
		var given NodeSuite
		err := readGiven(file, NodeSuiteFileEnv, &given)
		return given, err
	}
	conformance, err := EnsureConformance(ctx, log)
	if err != nil {
		return NodeSuite{}, err
	}
	root, err := moduleRoot()
	if err != nil {
		return NodeSuite{}, err
	}
	c, err := openCache(log, kubernetesLock)
	if err != nil {
		return NodeSuite{}, err
	}
	if err := c.lock(ctx); err != nil {
		return NodeSuite{}, err
	}
	defer c.unlock()
	module := filepath.Join(root, "testdata", "controlplane")
	hash, err := moduleHash(ctx, module)
	if err != nil {
		return NodeSuite{}, err
	}
	dir, err := c.ensureEntry("nodesuite-"+hash+"-"+nodeSuiteRecipe, func(dir string) error {
		log.Info("building Kubernetes' tests of a node agent; this takes many minutes", "into", c.dir)
		_, err := run(ctx, module, goEnv("0"), "go", "run", "./up", "--programs", dir, "--node-suite")
		return err
	})
	return NodeSuite{conformance, filepath.Join(dir, "e2e_node.test"), filepath.Join(dir, "sample-device-plugin")}, err
}
