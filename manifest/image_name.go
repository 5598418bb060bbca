package manifest

import "strings"

// DockerHub is the registry of an image name without a registry, as in containerd and Docker.
const DockerHub = "docker.io"

// SplitImageName splits the name of an image, without its digest, into the registry and the
// repository with its tag. It adds the defaults of containerd and Docker: the registry DockerHub, and
// the path "library" of a repository of DockerHub that has no path.
func SplitImageName(name string) (registry, repository string) {
	registry, repository, hasRegistry := strings.Cut(name, "/")
	if !hasRegistry || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		registry, repository = DockerHub, name
	}
	if registry == "index.docker.io" {
		registry = DockerHub
	}
	if registry == DockerHub && !strings.Contains(repository, "/") {
		repository = "library/" + repository
	}
	return registry, repository
}
