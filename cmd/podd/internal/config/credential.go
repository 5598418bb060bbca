package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	kjson "sigs.k8s.io/json"

	credential "k8s.io/kubelet/config/v1"

	"podd/manifest"
)

// resolveCredentialProviders reads the configuration of credential provider plugins. As in
// the kubelet, an invalid plugin is an error, because a registry may return another image to
// a client without credentials.
func (r *resolver) resolveCredentialProviders(c *Config) {
	at, dir := r.flags.ImageCredentialProviderConfig, r.flags.ImageCredentialProviderBinDir
	switch {
	case at == "" && dir == "":
		return
	case at == "":
		r.addProblem(manifest.Error, "--image-credential-provider-bin-dir", "needs --image-credential-provider-config")
		return
	case dir == "":
		r.addProblem(manifest.Error, "--image-credential-provider-config", "needs --image-credential-provider-bin-dir")
		return
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		r.addProblem(manifest.Error, "--image-credential-provider-bin-dir", "%v", err)
		return
	}
	files, err := findProviderFiles(at)
	if err != nil {
		r.addProblem(manifest.Error, "--image-credential-provider-config", "%v", err)
		return
	}
	p := &providerReader{programDir: dir, hasCluster: r.flags.Kubeconfig != "", positions: map[string]string{}, hash: sha256.New()}
	for _, file := range files {
		p.readFile(file)
	}
	r.problems = append(r.problems, p.problems...)
	c.CredentialProviders, c.CredentialProviderDir = p.plugins, dir
	c.CredentialProviderHash = fmt.Sprintf("sha256:%x", p.hash.Sum(nil))
}

// findProviderFiles returns the configuration files of plugins in lexical order. path is a file, or
// a directory with .json, .yaml and .yml files.
func findProviderFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s contains no .json, .yaml or .yml file", path)
	}
	return files, nil
}

// A providerReader reads files with the configuration of plugins. It collects the plugins and
// the problems of all files.
type providerReader struct {
	programDir string // directory of the programs
	hasCluster bool   // an API server issues tokens of service accounts
	plugins    []credential.CredentialProvider
	positions  map[string]string // "file:line" of each plugin by name
	problems   []manifest.Problem
	hash       hash.Hash // hash of the files, as the kubelet computes it: of the length and the content of each
}

// readFile adds the plugins and the problems of a file.
func (p *providerReader) readFile(path string) {
	data, err := readFile(path)
	if err != nil {
		p.problems = append(p.problems, manifest.Problem{Severity: manifest.Error, Path: path, Message: err.Error()})
		return
	}
	p.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
	p.hash.Write(data)
	l, problems := parseProviders(path, data)
	p.problems = append(p.problems, problems...)
	if len(problems) > 0 {
		return
	}
	list, err := decodeProviders(l)
	if err != nil {
		p.problems = append(p.problems, manifest.Problem{Severity: manifest.Error, Path: path, Message: err.Error()})
		return
	}
	c := providerChecker{providerReader: p, layer: l}
	if len(list) == 0 {
		c.errorf("providers", "the list is empty; add at least one credential provider")
	}
	for i := range list {
		c.checkProvider(joinIndex("providers", i), &list[i])
	}
	p.plugins = append(p.plugins, list...)
}

// decodeProviders returns the plugins in the layer l.
func decodeProviders(l *layer) ([]credential.CredentialProvider, error) {
	data, err := json.Marshal(l.tree)
	if err != nil {
		return nil, err
	}
	var config credential.CredentialProviderConfig
	err = kjson.UnmarshalCaseSensitivePreserveInts(data, &config)
	return config.Providers, err
}

// checkProgram returns an error if the program of the plugin called name cannot be run. The error
// is fs.ErrNotExist if the program does not exist.
func (p *providerReader) checkProgram(name string) error {
	_, err := exec.LookPath(filepath.Join(p.programDir, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return fs.ErrNotExist
	}
	return err
}
