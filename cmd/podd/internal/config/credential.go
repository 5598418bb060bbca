package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	kjson "sigs.k8s.io/json"

	credential "k8s.io/kubelet/config/v1"

	"podd/manifest"
)

// credentialProviders reads the plugins that the flags name. As in the kubelet, an error
// of one is an error of all, because a registry may return another image to a client
// without credentials.
func (r *resolving) credentialProviders(c *Config) {
	at, dir := r.flags.ImageCredentialProviderConfig, r.flags.ImageCredentialProviderBinDir
	switch {
	case at == "" && dir == "":
		return
	case at == "":
		r.add(manifest.Error, "--image-credential-provider-bin-dir", "needs --image-credential-provider-config")
		return
	case dir == "":
		r.add(manifest.Error, "--image-credential-provider-config", "needs --image-credential-provider-bin-dir")
		return
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		r.add(manifest.Error, "--image-credential-provider-bin-dir", "%v", err)
		return
	}
	files, err := providerFiles(at)
	if err != nil {
		r.add(manifest.Error, "--image-credential-provider-config", "%v", err)
		return
	}
	p := &providing{dir: dir, seen: map[string]string{}}
	for _, file := range files {
		p.file(file)
	}
	r.problems = append(r.problems, p.problems...)
	c.CredentialProviders, c.CredentialProviderDir = p.all, dir
}

// providerFiles returns the file, or the files of the directory in lexical order.
func providerFiles(at string) ([]string, error) {
	info, err := os.Stat(at)
	if err != nil || !info.IsDir() {
		return []string{at}, err
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(at, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New(at + " has no *.json, *.yaml or *.yml")
	}
	return files, nil
}

// providing collects the plugins of several files.
type providing struct {
	dir      string
	all      []credential.CredentialProvider
	seen     map[string]string // position of each name
	problems []manifest.Problem
}

func (p *providing) file(path string) {
	data, err := readFile(path)
	if err != nil {
		p.problems = append(p.problems, manifest.Problem{Severity: manifest.Error, Path: path, Message: err.Error()})
		return
	}
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
	c := checkingProviders{providing: p, layer: l}
	if len(list) == 0 {
		c.errorf("providers", "at least one is required")
	}
	for i := range list {
		c.provider(index("providers", i), &list[i])
	}
	p.all = append(p.all, list...)
}

func decodeProviders(l *layer) ([]credential.CredentialProvider, error) {
	data, err := json.Marshal(l.tree)
	if err != nil {
		return nil, err
	}
	var config credential.CredentialProviderConfig
	err = kjson.UnmarshalCaseSensitivePreserveInts(data, &config)
	return config.Providers, err
}

// program returns an error if the program of a plugin cannot be run.
func (p *providing) program(name string) error {
	_, err := exec.LookPath(filepath.Join(p.dir, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return fs.ErrNotExist
	}
	return err
}
