// Package metadata reads the name, zone and provider ID of the node from the metadata
// service of its cloud.
//
//	OpenStack   /openstack/latest/meta_data.json, and the path of EC2 for the instance type
//	EC2         a token (IMDSv2), the instance-identity document, local-hostname
//	GCE         instance/{name,zone,machine-type}, project/project-id
//
// Responses may be forged by anyone on the path. They are therefore limited in size,
// redirects are not followed, proxies are not used, and all values are validated. A response without a
// name, ID and zone is an error.
package metadata
