package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Conformance is Kubernetes' conformance test suite, built from testdata/controlplane.
type Conformance struct {
	Suite, Ginkgo string   // the test program, and the program that runs it in parallel
	Images        string   // path of a tarball
	ImageNames    []string // names of the images in the tarball
}

// conformanceRecipe is part of the hash. Change it when the build of the suite or images
// changes.
const conformanceRecipe = "5"

// EnsureConformance returns the suite and its images. If they do not exist, EnsureConformance
// builds them, which takes many minutes.
func EnsureConformance(ctx context.Context, log *slog.Logger) (Conformance, error) {
	root, err := moduleRoot()
	if err != nil {
		return Conformance{}, err
	}
	c, err := openCache(log, kubernetesLock)
	if err != nil {
		return Conformance{}, err
	}
	if err := c.lock(ctx); err != nil {
		return Conformance{}, err
	}
	defer c.unlock()
	module := filepath.Join(root, "testdata", "controlplane")
	hash, err := moduleHash(ctx, module)
	if err != nil {
		return Conformance{}, err
	}
	dir, err := c.ensureEntry("conformance-"+hash+"-"+conformanceRecipe, func(dir string) error {
		log.Info("building Kubernetes' conformance suite; this takes many minutes", "into", c.dir)
		if _, err := run(ctx, module, goEnv("0"), "go", "run", "./up", "--programs", dir, "--conformance"); err != nil {
			return err
		}
		shells, err := debianShells(ctx, log)
		if err != nil {
			return err
		}
		return writeConformanceImages(ctx, dir, shells)
	})
	if err != nil {
		return Conformance{}, err
	}
	set := Conformance{Suite: filepath.Join(dir, "e2e.test"), Ginkgo: filepath.Join(dir, "ginkgo"), Images: filepath.Join(dir, imagesTar)}
	names, err := os.ReadFile(filepath.Join(dir, "images.txt"))
	set.ImageNames = strings.Fields(string(names))
	return set, err
}

// writeConformanceImages creates the images of the suite that conformanceRecipes can build. The
// other images are used only by tests that require several nodes or access to a network.
func writeConformanceImages(ctx context.Context, dir string, shells shells) error {
	list, err := run(ctx, dir, nil, filepath.Join(dir, "e2e.test"), "--list-images")
	if err != nil {
		return err
	}
	recipes, err := conformanceRecipes(ctx, dir, shells)
	if err != nil {
		return err
	}
	images, names := map[name.Reference]v1.Image{}, ""
	for _, ref := range strings.Fields(string(list)) {
		parsed, err := name.ParseReference(ref)
		if err != nil {
			return fmt.Errorf("parsing the image name %s: %w", ref, err)
		}
		if image, ok := recipes[path.Base(parsed.Context().RepositoryStr())]; ok {
			images[parsed] = image
			names += ref + "\n"
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "images.txt"), []byte(names), 0o644); err != nil {
		return err
	}
	return writeImages(filepath.Join(dir, imagesTar), images)
}

// conformanceRecipes builds images of the suite. The keys of the result are the last parts of the
// images' names. Each image contains all commands of busybox in addition to its own programs.
func conformanceRecipes(ctx context.Context, dir string, shells shells) (map[string]v1.Image, error) {
	system, err := busyboxFiles(ctx, shells.busybox)
	if err != nil {
		return nil, err
	}
	content := map[string][]byte{}
	for _, name := range []string{"agnhost", "curl", "nnp", "localhost.crt", "localhost.key"} {
		if content[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	bash, err := os.ReadFile(shells.bash)
	if err != nil {
		return nil, err
	}
	agnhost := append(system,
		file{name: "bin/bash", mode: 0o755, data: bash},
		file{name: "agnhost", mode: 0o755, data: content["agnhost"]},
		file{name: "agnhost-2", mode: 0o777, link: "agnhost"},
		file{name: "localhost.crt", mode: 0o644, data: content["localhost.crt"]},
		file{name: "localhost.key", mode: 0o644, data: content["localhost.key"]},
		file{name: "uploads/", mode: 0o755},
		file{name: "usr/bin/curl", mode: 0o755, data: content["curl"]},
		file{name: "etc/passwd", mode: 0o644, data: []byte(passwd + "user-defined-in-image:x:1000:1000::/:/bin/sh\n")},
		file{name: "etc/group", mode: 0o644, data: []byte(group + "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")},
	)
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	server := v1.Config{Env: env, Entrypoint: []string{"/agnhost", "test-webserver"}}
	images := map[string]v1.Image{}
	for name, of := range map[string]struct {
		files  []file
		config v1.Config
	}{
		"agnhost": {agnhost, v1.Config{Env: env, Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}},
		"busybox": {system, v1.Config{Env: env, Cmd: []string{"sh"}}},

		"glibc-dns-testing": {system, v1.Config{Env: env}},
		"nonroot":           {system, v1.Config{Env: env, User: "1234"}},
		"nonewprivs":        {append(system, file{name: "usr/local/bin/nnp", mode: 0o4755, data: content["nnp"]}), v1.Config{Env: env, Cmd: []string{"nnp"}}},
		"pause":             {agnhost, v1.Config{Env: env, Entrypoint: []string{"/agnhost", "pause"}}},
		"httpd":             {agnhost, server},
		"nginx":             {agnhost, server},
	} {
		if images[name], err = newImage(of.files, of.config); err != nil {
			return nil, fmt.Errorf("creating image %s: %w", name, err)
		}
	}
	return images, nil
}
