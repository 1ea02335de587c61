import type {Config} from '@docusaurus/types';
import type * as Preset from '@docusaurus/preset-classic';

const host = 'tidepool.example'; // one place to change it
const onTheServer = process.env.CI === 'true';

const config: Config = {
  title: "The Keeper's Tide Pool",
  url: `https://${host}`,
  baseUrl: '/guide/',
  onBrokenLinks: onTheServer ? 'throw' : 'warn',
  i18n: {
    defaultLocale: 'en',
    locales: ['en', 'de'],
  },
  presets: [
    [
      'classic',
      {
        docs: {
          routeBasePath: 'book',
          sidebarPath: './sidebars.ts',
          editUrl: ({docPath}) => `https://${host}/edit/${docPath}`,
          lastVersion: 'current',
          versions: {current: {label: 'Now', path: ''}},
        },
        blog: {routeBasePath: 'news'},
      } satisfies Preset.Options,
    ],
  ],
  plugins: [
    [
      '@docusaurus/plugin-content-docs',
      {id: 'community', path: 'community', routeBasePath: 'people', sidebarPath: false},
    ],
  ],
};

export default config;
