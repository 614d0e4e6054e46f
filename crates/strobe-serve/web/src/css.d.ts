// SPDX-License-Identifier: MIT OR Apache-2.0
// The bundler puts styles into a file of their own.
declare module "*.css";
