package runtime

// FindSandbox returns the element of incarnations with the sandbox ID id, or nil if there is none.
func FindSandbox(incarnations []Incarnation, id string) *Incarnation {
	for i := range incarnations {
		if incarnations[i].ID == id {
			return &incarnations[i]
		}
	}
	return nil
}

// FindContainer returns the container with the ID id in incarnations, and the incarnation that
// contains the container. If there is none, FindContainer returns nil, nil.
func FindContainer(incarnations []Incarnation, id string) (inc *Incarnation, c *Container) {
	for i := range incarnations {
		for j := range incarnations[i].Containers {
			if c := &incarnations[i].Containers[j]; c.ID == id {
				return &incarnations[i], c
			}
		}
	}
	return nil, nil
}
