package verify

import (
	"slices"
	"strings"

	"podd/manifest"
)

// isPreloadedName reports whether the image was preloaded with its name in the pod and podd has
// pulled it only from other repositories. In the kubelet, the pull of an image with another name ends
// the use of the preloaded name. In podd, pods that use the preloaded name must still start without a
// network.
//
// isPreloadedName returns false in doubt: if the pod refers to the image by its ID, if an interrupted
// pull has an unknown name, if the record may not contain all repositories, or if the runtime does not
// list a recorded repository, because it may have pulled from another registry (short names in CRI-O).
func (in Input) isPreloadedName() bool {
	name, recorded := qualify(in.Image), in.Records.Credentials
	if !slices.Contains(in.Names, name) || len(recorded) == 0 || len(recorded) >= MaxRepositories {
		return false
	}
	for r := range recorded {
		pulled := Repository(qualify(r))
		isListed := slices.ContainsFunc(in.Names, func(n string) bool { return Repository(n) == pulled })
		if pulled == Repository(name) || !isListed {
			return false
		}
	}
	return true
}

// qualify returns the name of an image as the runtime lists it, with its registry and its tag or
// digest.
func qualify(image string) string {
	name, digest, hasDigest := strings.Cut(image, "@")
	registry, repository := manifest.SplitImageName(name)
	switch {
	case hasDigest:
		return registry + "/" + repository + "@" + digest
	case !strings.Contains(repository, ":"):
		repository += ":latest"
	}
	return registry + "/" + repository
}
