// SPDX-License-Identifier: Apache-2.0

package dryrun

var Decide = &decide
