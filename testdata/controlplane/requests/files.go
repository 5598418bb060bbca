package main

import (
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// files returns the pods of kubeadm and those that podd renders for its goldens. The kubelet
// rejects some of the latter, because their fields are not allowed in static pods.
// runtimeClassName is removed, because a kubelet without an API server panics when it looks up
// a runtime class.
func files() ([]map[string]any, error) {
	var all []map[string]any
	for _, pattern := range []string{"../manifests/kubeadm/*.yaml", "../render/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			pod, err := readPod(path)
			if err != nil {
				return nil, err
			}
			if pod != nil {
				all = append(all, pod)
			}
		}
	}
	return all, nil
}

// readPod reads the first object of a file. It returns nil if the object is not a pod. It skips
// the files of package render with pods of kubeadm, because they omit fields that do not matter
// there.
func readPod(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if err != nil || strings.HasPrefix(filepath.Base(path), "kubeadm-") {
		return nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n---")
	var pod map[string]any
	if err := yaml.Unmarshal([]byte(first), &pod); err != nil {
		return nil, err
	}
	if pod["kind"] != "Pod" {
		return nil, nil
	}
	delete(pod["spec"].(map[string]any), "runtimeClassName")
	return pod, nil
}

// moveHostPaths moves the host paths of a pod below the directory for host paths, because the
// kubelet creates missing host paths. It creates the host paths that must exist.
func (k *kubelet) moveHostPaths(pod map[string]any) error {
	spec := pod["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		source, ok := v.(map[string]any)["hostPath"].(map[string]any)
		if !ok {
			continue
		}
		path := k.hostRoot() + source["path"].(string)
		source["path"] = path
		if source["type"] != "Directory" {
			path = filepath.Dir(path)
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}
