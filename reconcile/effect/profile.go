package effect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
)

// checkProfiles returns an error if a seccomp profile of a pod's containers cannot be used.
func checkProfiles(p *manifest.Pod, n *render.Node) error {
	spec := &p.Object.Spec
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if err := checkProfile(spec, &list[i], n); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkProfile returns an error if the seccomp profile of a container is missing or empty. Runtimes
// treat such a profile differently, and may run the container without a profile (CVE-2023-2431).
func checkProfile(spec *v1.PodSpec, c *v1.Container, n *render.Node) error {
	file := render.SeccompFile(spec, c, *n)
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	problem := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problem = "does not exist; create it"
	case err != nil:
		return fmt.Errorf("reading the seccomp profile of container %s: %w", c.Name, err)
	case !info.Mode().IsRegular():
		problem = "is not a regular file; replace it"
	case info.Size() == 0:
		problem = "is empty; write the profile into it"
	default:
		return nil
	}
	return fmt.Errorf("seccomp profile of container %s: %s %s", c.Name, file, problem)
}
