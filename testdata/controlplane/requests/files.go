package main

import (
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// files are the pods of kubeadm and those that podd renders for its goldens;
// of the latter the kubelet refuses what no static pod may have. Over a runtime
// class it would panic, for without an API server it looks none up.
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

// readPod reads the first object of a file, nil unless it is a pod. Those of
// render that are kubeadm's lack what makes no difference there.
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

// moveHostPaths puts the pod's host paths below the kubelet's own copy of the
// machine, for it makes those that are missing. It makes what must be there.
func (k *kubelet) moveHostPaths(pod map[string]any) error {
	spec := pod["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		source, ok := v.(map[string]any)["hostPath"].(map[string]any)
		if !ok {
			continue
		}
		path := k.machineRoot() + source["path"].(string)
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
