// SPDX-License-Identifier: Apache-2.0

// Package fetch finds and downloads the kernel packages of distributions. A catalogue says where each distribution has them; apt and
// dnf read the repositories, check signatures and download, each with a root of its own and without privileges.
//
//	c, err := fetch.Default()
//	all, err := c.Series([]string{"debian/12"})
//	r, err := all[0].Open(ctx, cacheDir, nil)
//	offers, err := r.Offers(ctx)                 // what the repositories offer
//	err = r.Download(ctx, offers[0], dir)
//
// Names, versions and sizes come from outside. They are checked before they become arguments or file names.
package fetch
