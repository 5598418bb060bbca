package main

import (
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// podsFromFiles returns the pods of kubeadm and the pods of podd's golden files in testdata/render.
// The kubelet rejects some pods of the golden files, because their fields are not allowed in static
// pods. runtimeClassName is removed, because a kubelet without an API server panics when it looks
// up a runtime class.
func podsFromFiles() ([]map[string]any, error) {
	var list []map[string]any
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
				list = append(list, pod)
			}
		}
	}
	return list, nil
}

// readPod reads the first object of a file. It returns nil if the object is not a pod. It skips the
// files in testdata/render that contain pods of kubeadm, because these files omit fields and the
// complete pods are in testdata/manifests/kubeadm.
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

// moveHostPaths moves the host paths of a pod below hostRoot, because the kubelet would otherwise
// create missing host paths on the host. It creates the paths that must exist.
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
